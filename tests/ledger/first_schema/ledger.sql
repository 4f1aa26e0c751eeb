BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
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
INSERT INTO "closings" VALUES(1,0,20000000,0,0,0);
INSERT INTO "closings" VALUES(1,1,20000000,0,3192903,3192903);
INSERT INTO "closings" VALUES(1,2,20000000,3192903,0,3192903);
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
INSERT INTO "events" VALUES(1,1,'opened',NULL,'2026-11-15T23:43:21.175+00:00','{"config":{"allocator":{"name":"even"},"budget":{"max_rounds":6,"total":20.0},"clients":{"absence_rate":0.0,"bids":"uniform(0.5, 1.5)","cost_by":"none","count":5,"drift":0.0,"epsilon":null,"failure_rate":0.3,"free_riders":0,"free_riding":"unchanged","label_noise":0.5,"late_rate":0.0,"noisy":0,"partition":"shards(2)","poisoners":0,"strategic":0,"strategy":"overbid(0.2)","valuation":"mixed"},"data":{"evaluation_samples":null,"held_out":"halves","name":"digits","path":null,"train_samples":null,"verify":true},"federation":{"engine":"synthetic","workers":0},"ledger":{"approve_above":null,"client_cap":null,"key":null,"receipt":null,"retention":"keep","url":null},"mechanism":{"name":"bid-price-first"},"seed":0,"training":{"aggregation":"samples","algorithm":"fedsgd","average_last":10,"batch_size":50,"checkpoint_every":1,"evidence":false,"learning_rate":0.1,"local_epochs":1,"model":"mlp","momentum":0.0,"outliers":0.0,"precision":"float32","proximal":0.0,"weight_decay":0.0}},"keyed":false,"retention":"keep"}','0000000000000000000000000000000000000000000000000000000000000000','ab80d6170f5b80705e387e84cd3cfa7fab1537fbe7a6291f55a2be61c4752077');
INSERT INTO "events" VALUES(1,2,'settled',0,'2026-11-15T23:43:21.191+00:00','{"delivered":[],"evaluation":{"accuracy":0.1,"loss":2.3025850929940455},"evidence":{},"void":[]}','ab80d6170f5b80705e387e84cd3cfa7fab1537fbe7a6291f55a2be61c4752077','4bf39b25c15bdd770e47162e20be4b7f8c244ede79865d365c3c04bfe9824d12');
INSERT INTO "events" VALUES(1,3,'bids',1,'2026-11-15T23:43:21.197+00:00','{"bids":"8d75d69b81bc83c4be2de30e030c46b09d7d8bb4d111d755c9e2114e3b8fa9e1"}','4bf39b25c15bdd770e47162e20be4b7f8c244ede79865d365c3c04bfe9824d12','85a15385a429d927fafb82304cdc55974e8e22d4d12c5363f74386d4dedfd18e');
INSERT INTO "events" VALUES(1,4,'awarded',1,'2026-11-15T23:43:21.198+00:00','{"belief":null,"fell_short":false,"menu":"c27dbd38d6d8568bcbea8fcfb130791bba1b1a065cfc223e194584e7ae2eba2c","offer":{"budget":3333333,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[20000000,6,0],"weights":null}','85a15385a429d927fafb82304cdc55974e8e22d4d12c5363f74386d4dedfd18e','f5ac0e24ad45a47b3d35b1a9f3e8878b373319d60c52c2d4d5f488bdd0332032');
INSERT INTO "events" VALUES(1,5,'settled',1,'2026-11-15T23:43:21.201+00:00','{"delivered":["client-4","client-1","client-3"],"evaluation":{"accuracy":0.09650056557534986,"loss":2.338206409769917},"evidence":{"client-1":{},"client-3":{},"client-4":{}},"void":[]}','f5ac0e24ad45a47b3d35b1a9f3e8878b373319d60c52c2d4d5f488bdd0332032','ed2bca71f7313be6128b30de977097782efa343ea5c687c2bdcdc931501c1bac');
INSERT INTO "events" VALUES(1,6,'bids',2,'2026-11-15T23:43:21.205+00:00','{"bids":"74732a2e00b02bd6d35b612e325e19044ef77a8b2dc3142a79b320e3ccf827c9"}','ed2bca71f7313be6128b30de977097782efa343ea5c687c2bdcdc931501c1bac','e1019cc8aef208027906e30afa866b77c8ca697f2d08ecb256ee97e64fa5ef01');
INSERT INTO "events" VALUES(1,7,'awarded',2,'2026-11-15T23:43:21.206+00:00','{"belief":null,"fell_short":false,"menu":"a2849cbdef781969595bc446dbb02dcffa4b738b290f2ff6bf390c2f13a3dec2","offer":{"budget":3333333,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[20000000,6,3192903],"weights":null}','e1019cc8aef208027906e30afa866b77c8ca697f2d08ecb256ee97e64fa5ef01','502a44dba584ea1e392f0693ee45c2f20ab5e8022badb009c229d4f83f2cf3f7');
INSERT INTO "events" VALUES(1,8,'settled',2,'2026-11-15T23:43:21.208+00:00','{"delivered":[],"evaluation":{"accuracy":0.09650056557534986,"loss":2.338206409769917},"evidence":{},"void":["client-3","client-1"]}','502a44dba584ea1e392f0693ee45c2f20ab5e8022badb009c229d4f83f2cf3f7','5fe74a67bb37c6e20a85a2872ae97687a3d3d68a98fdf6f944e9c2d021580987');
INSERT INTO "events" VALUES(1,9,'bids',3,'2026-11-15T23:43:21.212+00:00','{"bids":"28b23535b7049d861a7d0192ad53122eea580e62f4e263a7906b3fc03bebfcd4"}','5fe74a67bb37c6e20a85a2872ae97687a3d3d68a98fdf6f944e9c2d021580987','2962d2ab2908018a2fa9fc96b62289ab32911d347405eeac4200321ea1c880c9');
INSERT INTO "events" VALUES(1,10,'awarded',3,'2026-11-15T23:43:21.213+00:00','{"belief":null,"fell_short":false,"menu":"09f25d378ed8c8d4a2859dc6dc560a5e987d22606d467a539fa38542e8c582dc","offer":{"budget":3333333,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[20000000,6,3192903],"weights":null}','2962d2ab2908018a2fa9fc96b62289ab32911d347405eeac4200321ea1c880c9','39eee6d6f4c1fe208c926042cf7ef9199f1b58452467bc7c03bc890aa818b52a');
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
INSERT INTO "promises" VALUES(1,2,'client-1',1,1415146);
INSERT INTO "promises" VALUES(1,2,'client-3',0,1415146);
INSERT INTO "promises" VALUES(1,3,'client-0',1,1450549);
INSERT INTO "promises" VALUES(1,3,'client-2',0,1450549);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	max_rounds INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (total > 0), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'run',20000000,6);
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
INSERT INTO "sealed" VALUES(1,1,'bids','3b0018f072c565415ed3bacfde6045ba','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{},"prices":[1252816,861235,1064301,983033,683574]}');
INSERT INTO "sealed" VALUES(1,1,'menu','aa4781015f31a25d507521a1a5a93afc','[861235,1966066,3192903,5011264]');
INSERT INTO "sealed" VALUES(1,2,'bids','864cb52313655bb296244ea3ecc0d55a','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{},"prices":[1445716,1032410,1457920,801678,1415146]}');
INSERT INTO "sealed" VALUES(1,2,'menu','41addbc6f52f9d3259816533c8ea7792','[1032410,2830292,4337148,5831680]');
INSERT INTO "sealed" VALUES(1,3,'bids','f89400b6999d3e9aa4284b785dda5fe7','{"clients":["client-0","client-2","client-4"],"columns":{},"prices":[1266862,1169068,1450549]}');
INSERT INTO "sealed" VALUES(1,3,'menu','2e918c7b3876e63e68d5f4f5ad43c8d7','[1266862,2901098]');
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
INSERT INTO "settlements" VALUES(1,2,'client-1',0,'it did not answer');
INSERT INTO "settlements" VALUES(1,2,'client-3',0,'it did not answer');
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
COMMIT;
