BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0002');
CREATE TABLE closings (
	run INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	total BIGINT NOT NULL, 
	spent_before BIGINT NOT NULL, 
	paid BIGINT NOT NULL, 
	spent_after BIGINT NOT NULL, 
	PRIMARY KEY (run, round), 
	CHECK (spent_after = spent_before + paid), 
	CHECK (spent_after <= total), 
	FOREIGN KEY(run) REFERENCES runs (id)
)
 WITHOUT ROWID

;
INSERT INTO "closings" VALUES(1,0,30000000,0,0,0);
INSERT INTO "closings" VALUES(1,1,30000000,0,3192903,3192903);
INSERT INTO "closings" VALUES(1,2,30000000,3192903,4337148,7530051);
INSERT INTO "closings" VALUES(1,3,30000000,7530051,3800586,11330637);
CREATE TABLE events (
	run INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	round INTEGER, 
	at TEXT NOT NULL, 
	body TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (run, number), 
	FOREIGN KEY(run) REFERENCES runs (id)
)
 WITHOUT ROWID

;
INSERT INTO "events" VALUES(1,1,'opened',NULL,'2026-11-16T21:09:06.432+00:00','{"approve_above":null,"config":{"allocator":{"n":3,"name":"fixed"},"budget":{"max_rounds":8,"total":30.0},"clients":{"absence_rate":0.0,"bids":"uniform(0.5, 1.5)","cost_by":"none","count":5,"drift":0.0,"epsilon":null,"failure_rate":0.0,"free_riders":0,"free_riding":"unchanged","label_noise":0.5,"late_rate":0.0,"noisy":0,"partition":"shards(2)","poisoners":0,"strategic":0,"strategy":"overbid(0.2)","valuation":"mixed"},"data":{"evaluation_samples":60,"held_out":"halves","name":"digits","path":null,"train_samples":240,"verify":true},"federation":{"engine":"flower","workers":1},"ledger":{"approve_above":null,"client_cap":null,"key":null,"receipt":null,"retention":"keep","url":null},"mechanism":{"name":"bid-price-first"},"seed":0,"training":{"aggregation":"samples","algorithm":"fedsgd","average_last":10,"batch_size":50,"checkpoint_every":1,"evidence":false,"learning_rate":0.1,"local_epochs":1,"model":"linear","momentum":0.0,"outliers":0.0,"precision":"float32","proximal":0.0,"weight_decay":0.0}},"keyed":false,"retention":"keep"}','0000000000000000000000000000000000000000000000000000000000000000','756ad7c2cf620743d972b7a2feb24941cfe2cfb96d3cf08cb0d3cac7f8691974');
INSERT INTO "events" VALUES(1,2,'settled',0,'2026-11-16T21:09:06.501+00:00','{"delivered":[],"evaluation":{"accuracy":0.11666666666666667,"loss":2.345600891113281,"test_accuracy":0.11666666666666667,"test_loss":2.3446436564127606},"evidence":{},"void":[]}','756ad7c2cf620743d972b7a2feb24941cfe2cfb96d3cf08cb0d3cac7f8691974','3a1eff362c7693c401078771910bfce77e44a43cfbf27619084efe1a9e06287f');
INSERT INTO "events" VALUES(1,3,'bids',1,'2026-11-16T21:09:20.654+00:00','{"bids":"2ea77ac70acf13cfe20520f3777b7fa8939b171df49fd69734418dc3a1ce467a"}','3a1eff362c7693c401078771910bfce77e44a43cfbf27619084efe1a9e06287f','f855370e741f781741a44ee464d16cd89c8415b6504b96725ed5b9c405dfae54');
INSERT INTO "events" VALUES(1,4,'awarded',1,'2026-11-16T21:09:20.654+00:00','{"belief":null,"fell_short":false,"menu":"f3b943fa494203d9e61a89b4774e6e6e49c9604f725c578ea110a1710d780115","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,8,0],"weights":null}','f855370e741f781741a44ee464d16cd89c8415b6504b96725ed5b9c405dfae54','3dec845d62c1df73c49f0c12c3e5e5afd63f8715c1a9707d1636674a55bf3e45');
INSERT INTO "events" VALUES(1,5,'settled',1,'2026-11-16T21:09:20.798+00:00','{"delivered":["client-1","client-3","client-4"],"evaluation":{"accuracy":0.15,"loss":2.3374791463216145,"test_accuracy":0.11666666666666667,"test_loss":2.3384905497233075},"evidence":{"client-1":{"samples":48},"client-3":{"samples":48},"client-4":{"samples":48}},"void":[]}','3dec845d62c1df73c49f0c12c3e5e5afd63f8715c1a9707d1636674a55bf3e45','d026528658b6bd10b3ff6e24911fef178767727894bdc32da3733ad27ee9344b');
INSERT INTO "events" VALUES(1,6,'bids',2,'2026-11-16T21:09:20.891+00:00','{"bids":"5e03de8cd33da6c25578e15d4b40afb124b6ad804e2b710085692f16bdf633fa"}','d026528658b6bd10b3ff6e24911fef178767727894bdc32da3733ad27ee9344b','dd4234587751c6aa31578d24c79f791a71718000d33b6509c33768f0ce712054');
INSERT INTO "events" VALUES(1,7,'awarded',2,'2026-11-16T21:09:20.891+00:00','{"belief":null,"fell_short":false,"menu":"b819d9d24ff77ca96a1d2503910f17894bba35ba6aa0f9c037b8510099dcadf2","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,8,3192903],"weights":null}','dd4234587751c6aa31578d24c79f791a71718000d33b6509c33768f0ce712054','61be3c8847b39fbd6579d43c6ffa3f7b3226a8522fe1149894cff511632a85b5');
INSERT INTO "events" VALUES(1,8,'settled',2,'2026-11-16T21:09:20.985+00:00','{"delivered":["client-1","client-3","client-4"],"evaluation":{"accuracy":0.18333333333333332,"loss":2.3339187622070314,"test_accuracy":0.15,"test_loss":2.3369761149088544},"evidence":{"client-1":{"samples":48},"client-3":{"samples":48},"client-4":{"samples":48}},"void":[]}','61be3c8847b39fbd6579d43c6ffa3f7b3226a8522fe1149894cff511632a85b5','ff8a1816122a5550473a266c2be58b000caef30f85395c84941aa2ad96118a7b');
INSERT INTO "events" VALUES(1,9,'bids',3,'2026-11-16T21:09:21.089+00:00','{"bids":"1a2914862b1011fe60232d7d8f8b6695b5d73f8990df5b5f7e183330783f1566"}','ff8a1816122a5550473a266c2be58b000caef30f85395c84941aa2ad96118a7b','352bb7d5f7a311b118fc70138fc1bfc08680e5be810d57770b1978ce28e1b6df');
INSERT INTO "events" VALUES(1,10,'awarded',3,'2026-11-16T21:09:21.089+00:00','{"belief":null,"fell_short":false,"menu":"baf3d9f2c40307a51cc9922cf1c34052d4847d745a9387b15e3dcfc2f0560a75","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,8,7530051],"weights":null}','352bb7d5f7a311b118fc70138fc1bfc08680e5be810d57770b1978ce28e1b6df','33132c52771cc799feb94c6a887263f7f126177eea7899caf7117387b83fda88');
INSERT INTO "events" VALUES(1,11,'settled',3,'2026-11-16T21:09:21.184+00:00','{"delivered":["client-1","client-2","client-3"],"evaluation":{"accuracy":0.21666666666666667,"loss":2.320332336425781,"test_accuracy":0.18333333333333332,"test_loss":2.32731450398763},"evidence":{"client-1":{"samples":48},"client-2":{"samples":48},"client-3":{"samples":48}},"void":[]}','33132c52771cc799feb94c6a887263f7f126177eea7899caf7117387b83fda88','866fac9c0659d7f4ee8533419446d9e908c1a821d06e580f8e7ab58ec8b5583b');
INSERT INTO "events" VALUES(1,12,'bids',4,'2026-11-16T21:09:21.287+00:00','{"bids":"7b1b2f33cb9a352071b0515121ea58ef77e19ddec8e4e02de28f8353aa0f212d"}','866fac9c0659d7f4ee8533419446d9e908c1a821d06e580f8e7ab58ec8b5583b','4c26d5580d25bb4ae827e455d53329c05a1ca79ddbb0901e2cbb89e2e868789f');
INSERT INTO "events" VALUES(1,13,'awarded',4,'2026-11-16T21:09:21.287+00:00','{"belief":null,"fell_short":false,"menu":"56dcb7af09d9139759e7fe8fe96d4596dc3578d910f5f9a0caec6797a206c497","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,8,11330637],"weights":null}','4c26d5580d25bb4ae827e455d53329c05a1ca79ddbb0901e2cbb89e2e868789f','6569bd7986fc12505862d7c0b7a6bcd21de48b48bfd30be89d5eacedddce21b4');
CREATE TABLE memories (
	run INTEGER NOT NULL, 
	part TEXT NOT NULL, 
	round INTEGER NOT NULL, 
	salt TEXT NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (run, part), 
	FOREIGN KEY(run) REFERENCES runs (id)
);
CREATE TABLE promises (
	run INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	client TEXT NOT NULL, 
	rank INTEGER NOT NULL, 
	amount BIGINT NOT NULL, 
	PRIMARY KEY (run, round, client), 
	CHECK (amount > 0), 
	FOREIGN KEY(run) REFERENCES runs (id)
)
 WITHOUT ROWID

;
INSERT INTO "promises" VALUES(1,1,'client-1',1,1064301);
INSERT INTO "promises" VALUES(1,1,'client-3',2,1064301);
INSERT INTO "promises" VALUES(1,1,'client-4',0,1064301);
INSERT INTO "promises" VALUES(1,2,'client-1',1,1445716);
INSERT INTO "promises" VALUES(1,2,'client-3',0,1445716);
INSERT INTO "promises" VALUES(1,2,'client-4',2,1445716);
INSERT INTO "promises" VALUES(1,3,'client-1',0,1266862);
INSERT INTO "promises" VALUES(1,3,'client-2',1,1266862);
INSERT INTO "promises" VALUES(1,3,'client-3',2,1266862);
INSERT INTO "promises" VALUES(1,4,'client-1',0,1050489);
INSERT INTO "promises" VALUES(1,4,'client-2',1,1050489);
INSERT INTO "promises" VALUES(1,4,'client-4',2,1050489);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	max_rounds INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (total > 0), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'flower',30000000,8);
CREATE TABLE sealed (
	run INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	part TEXT NOT NULL, 
	salt TEXT NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (run, round, part), 
	FOREIGN KEY(run) REFERENCES runs (id)
)
 WITHOUT ROWID

;
INSERT INTO "sealed" VALUES(1,1,'bids','a64167c7c6a74e1d427fade2e75cef92','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{"samples":[48.0,48.0,48.0,48.0,48.0]},"prices":[1252816,861235,1064301,983033,683574]}');
INSERT INTO "sealed" VALUES(1,1,'menu','6f46afd6cf68cdd6caf421c3bb692561','[861235,1966066,3192903,5011264]');
INSERT INTO "sealed" VALUES(1,2,'bids','e03ce9546bc7082e631dbbd722478811','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{"samples":[48.0,48.0,48.0,48.0,48.0]},"prices":[1445716,1032410,1457920,801678,1415146]}');
INSERT INTO "sealed" VALUES(1,2,'menu','3e64d26dae669b5dd3f08632f92ff132','[1032410,2830292,4337148,5831680]');
INSERT INTO "sealed" VALUES(1,3,'bids','e78459b5b963646b9c2a1a978c8f2f30','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{"samples":[48.0,48.0,48.0,48.0,48.0]},"prices":[1266862,602049,1169068,1244740,1450549]}');
INSERT INTO "sealed" VALUES(1,3,'menu','bb366d5006545e37ee3a9c611dc00ba0','[1169068,2489480,3800586,5802196]');
INSERT INTO "sealed" VALUES(1,4,'bids','e3cd120bfca89b4576f3812e6b8048c7','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{"samples":[48.0,48.0,48.0,48.0,48.0]},"prices":[1050489,563455,668590,1168522,974390]}');
INSERT INTO "sealed" VALUES(1,4,'menu','f3104ed5a688c63ea7f11f179646c96a','[668590,1948780,3151467,4674088]');
CREATE TABLE settlements (
	run INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	client TEXT NOT NULL, 
	paid BIGINT NOT NULL, 
	reason TEXT, 
	PRIMARY KEY (run, round, client), 
	FOREIGN KEY(run, round, client) REFERENCES promises (run, round, client), 
	CHECK ((paid > 0) = (reason IS NULL)), 
	CHECK (paid >= 0)
)
 WITHOUT ROWID

;
INSERT INTO "settlements" VALUES(1,1,'client-1',1064301,NULL);
INSERT INTO "settlements" VALUES(1,1,'client-3',1064301,NULL);
INSERT INTO "settlements" VALUES(1,1,'client-4',1064301,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-1',1445716,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-3',1445716,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-4',1445716,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-1',1266862,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-2',1266862,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-3',1266862,NULL);
CREATE TABLE top_ups (
	run INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	amount BIGINT NOT NULL, 
	PRIMARY KEY (run, number), 
	CHECK (amount > 0), 
	FOREIGN KEY(run) REFERENCES runs (id)
);
CREATE UNIQUE INDEX once_a_round ON events (run, round, kind) WHERE round IS NOT NULL;
CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER promises_no_update BEFORE UPDATE ON promises BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER promises_no_delete BEFORE DELETE ON promises BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER settlements_no_update BEFORE UPDATE ON settlements BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER settlements_no_delete BEFORE DELETE ON settlements BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER closings_no_update BEFORE UPDATE ON closings BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER closings_no_delete BEFORE DELETE ON closings BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER settlements_keep_promises BEFORE INSERT ON settlements WHEN NEW.paid <> 0 AND NEW.paid <> (SELECT amount FROM promises WHERE run = NEW.run AND round = NEW.round AND client = NEW.client) BEGIN SELECT RAISE(ABORT, 'a settlement pays what was promised or nothing'); END;
CREATE TRIGGER closings_count_everyone BEFORE INSERT ON closings WHEN (SELECT COUNT(*) FROM settlements WHERE run = NEW.run AND round = NEW.round) <> (SELECT COUNT(*) FROM promises WHERE run = NEW.run AND round = NEW.round) BEGIN SELECT RAISE(ABORT, 'a round closes when every winner is settled'); END;
CREATE TRIGGER closings_add_up BEFORE INSERT ON closings WHEN NEW.paid <> (SELECT COALESCE(SUM(paid), 0) FROM settlements WHERE run = NEW.run AND round = NEW.round) BEGIN SELECT RAISE(ABORT, 'a round costs what its settlements paid'); END;
CREATE TRIGGER closings_follow BEFORE INSERT ON closings WHEN NEW.spent_before <> COALESCE((SELECT spent_after FROM closings WHERE run = NEW.run AND round = NEW.round - 1), 0) OR (NEW.round > 0 AND NOT EXISTS (SELECT 1 FROM closings WHERE run = NEW.run AND round = NEW.round - 1)) BEGIN SELECT RAISE(ABORT, 'a round begins with what the round before it left'); END;
CREATE INDEX between_rounds ON events (run, number) WHERE round IS NULL;
CREATE TRIGGER top_ups_no_update BEFORE UPDATE ON top_ups BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER top_ups_no_delete BEFORE DELETE ON top_ups BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER closings_within_the_budget BEFORE INSERT ON closings WHEN NEW.total > (SELECT total FROM runs WHERE id = NEW.run) + (SELECT COALESCE(SUM(amount), 0) FROM top_ups WHERE run = NEW.run) BEGIN SELECT RAISE(ABORT, 'a round spends from the budget and what was added to it'); END;
COMMIT;
