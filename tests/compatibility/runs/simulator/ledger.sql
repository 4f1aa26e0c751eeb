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
INSERT INTO "closings" VALUES(1,1,30000000,0,861235,861235);
INSERT INTO "closings" VALUES(1,2,30000000,861235,0,861235);
INSERT INTO "closings" VALUES(1,3,30000000,861235,1169068,2030303);
INSERT INTO "closings" VALUES(1,4,30000000,2030303,699717,2730020);
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
INSERT INTO "events" VALUES(1,1,'opened',NULL,'2026-11-16T21:07:55.107+00:00','{"approve_above":null,"config":{"allocator":{"name":"planner"},"budget":{"max_rounds":14,"total":30.0},"clients":{"absence_rate":0.0,"bids":"uniform(0.5, 1.5)","cost_by":"none","count":6,"drift":0.0,"epsilon":null,"failure_rate":0.2,"free_riders":0,"free_riding":"unchanged","label_noise":0.5,"late_rate":0.0,"noisy":0,"partition":"shards(2)","poisoners":0,"strategic":0,"strategy":"overbid(0.2)","valuation":"mixed"},"data":{"evaluation_samples":60,"held_out":"halves","name":"digits","path":null,"train_samples":240,"verify":true},"federation":{"engine":"simulator","workers":1},"ledger":{"approve_above":null,"client_cap":null,"key":null,"receipt":null,"retention":"keep","url":null},"mechanism":{"name":"fair"},"seed":0,"training":{"aggregation":"samples","algorithm":"fedsgd","average_last":3,"batch_size":50,"checkpoint_every":1,"evidence":false,"learning_rate":0.1,"local_epochs":1,"model":"linear","momentum":0.0,"outliers":0.0,"precision":"float32","proximal":0.0,"weight_decay":0.0}},"keyed":false,"retention":"keep"}','0000000000000000000000000000000000000000000000000000000000000000','5607b4573dc05bd354f86fc00fe159b8facdda547cf40469f5d2086ffce0c1d3');
INSERT INTO "events" VALUES(1,2,'settled',0,'2026-11-16T21:07:55.132+00:00','{"delivered":[],"evaluation":{"accuracy":0.11666666666666667,"loss":2.345600891113281,"test_accuracy":0.11666666666666667,"test_loss":2.3446436564127606},"evidence":{},"void":[]}','5607b4573dc05bd354f86fc00fe159b8facdda547cf40469f5d2086ffce0c1d3','07aeb34421e1e131376700ff6ecbca0425ba78d831a3238785d0271b0a0375a0');
INSERT INTO "events" VALUES(1,3,'bids',1,'2026-11-16T21:07:55.139+00:00','{"bids":"6c194d4f8fb9e3e3f600c0daa0fbf371e499340e71ffb075aba554863d02acd9"}','07aeb34421e1e131376700ff6ecbca0425ba78d831a3238785d0271b0a0375a0','b7a25b7b89ecbe24d78ca5ad1c5a37104e38ce626d9e8085f8fd92277f594670');
INSERT INTO "events" VALUES(1,4,'awarded',1,'2026-11-16T21:07:55.139+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: nothing learned yet"},"fell_short":false,"menu":"0e98575c27a38212aa0371f93a4f48f37ebbca13471d9761cfb6b9b0d385b707","offer":{"budget":1764705,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,0],"weights":[40.0]}','b7a25b7b89ecbe24d78ca5ad1c5a37104e38ce626d9e8085f8fd92277f594670','fbb1ae61eb3c0fc16d5f266469bc4589d809604dfa3caf3e1425a87d20db8594');
INSERT INTO "events" VALUES(1,5,'settled',1,'2026-11-16T21:07:55.183+00:00','{"delivered":["client-4"],"evaluation":{"accuracy":0.16666666666666666,"loss":2.318764495849609,"test_accuracy":0.11666666666666667,"test_loss":2.325726064046224},"evidence":{"client-4":{"loss_after":2.1874919891357423,"loss_before":2.505992126464844,"samples":40}},"void":[]}','fbb1ae61eb3c0fc16d5f266469bc4589d809604dfa3caf3e1425a87d20db8594','d194c29a58fcec233f65645473b483628c07c4ed127e2ba66c320423b8818ead');
INSERT INTO "events" VALUES(1,6,'bids',2,'2026-11-16T21:07:55.276+00:00','{"bids":"4028fda35d93e112d2a21a64b819d3527521cf520cc6de0bfbc0af4cf8dfea56"}','d194c29a58fcec233f65645473b483628c07c4ed127e2ba66c320423b8818ead','c85f294d9493ec9f6fdbe0377453f00e1fad564bd7369ff7b4e6fe38837994a2');
INSERT INTO "events" VALUES(1,7,'awarded',2,'2026-11-16T21:07:55.276+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: too few rounds to plan on"},"fell_short":false,"menu":"48c9ea4f5a983159f92f3022856d729acb7b0608334da89344787928678a1c1f","offer":{"budget":1821172,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,861235],"weights":[12.740005493164066]}','c85f294d9493ec9f6fdbe0377453f00e1fad564bd7369ff7b4e6fe38837994a2','9110ced50b5d87da4880b41a1fc62f8258b0a4c5b158ee6a2b01f1065bcf51c9');
INSERT INTO "events" VALUES(1,8,'settled',2,'2026-11-16T21:07:55.285+00:00','{"delivered":[],"evaluation":{"accuracy":0.16666666666666666,"loss":2.318764495849609,"test_accuracy":0.11666666666666667,"test_loss":2.325726064046224},"evidence":{},"void":["client-3"]}','9110ced50b5d87da4880b41a1fc62f8258b0a4c5b158ee6a2b01f1065bcf51c9','272548f52032a61cc3242035c30563fdbcca399c2cd2ee800506a350c51df519');
INSERT INTO "events" VALUES(1,9,'bids',3,'2026-11-16T21:07:55.290+00:00','{"bids":"65755e3789a52c5518ba3585ae3bd4f0dbe82fb60b054e6538cebd19fb445eab"}','272548f52032a61cc3242035c30563fdbcca399c2cd2ee800506a350c51df519','b22fcc9a793b4f9add46887688259cdae98603efdde9a8c89e0e1460b333b5bd');
INSERT INTO "events" VALUES(1,10,'awarded',3,'2026-11-16T21:07:55.290+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: too few rounds to plan on"},"fell_short":false,"menu":"0064c128241f77610dc409f4a798e92612d29f95cb59549f0dcc77fcd5022245","offer":{"budget":1942584,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,861235],"weights":[12.740005493164066]}','b22fcc9a793b4f9add46887688259cdae98603efdde9a8c89e0e1460b333b5bd','5d62a3d67a588aede8eb2881934beca6f588890dccc4b2c32b492ad62968378a');
INSERT INTO "events" VALUES(1,11,'settled',3,'2026-11-16T21:07:55.295+00:00','{"delivered":["client-1"],"evaluation":{"accuracy":0.16666666666666666,"loss":2.3495452880859373,"test_accuracy":0.16666666666666666,"test_loss":2.3047256469726562},"evidence":{"client-1":{"loss_after":1.9541854858398438,"loss_before":2.31610221862793,"samples":40}},"void":[]}','5d62a3d67a588aede8eb2881934beca6f588890dccc4b2c32b492ad62968378a','b5a10961885110ece82778aeb9a46641be52a0f55efb15ce252345168b8a34f4');
INSERT INTO "events" VALUES(1,12,'bids',4,'2026-11-16T21:07:55.300+00:00','{"bids":"e82b9fea0352b921ca62a63de5f5b1296e0dca4a004ffaf198e18fead677ad5b"}','b5a10961885110ece82778aeb9a46641be52a0f55efb15ce252345168b8a34f4','a22b793d2c85484573d963488691d4ea674ada0f91976699a0bd442d6fa23460');
INSERT INTO "events" VALUES(1,13,'awarded',4,'2026-11-16T21:07:55.300+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: too few rounds to plan on"},"fell_short":false,"menu":"7e35deeddff5c9d1c3d04c1dc684049b849a01cea00fae3996c622452bf88c0d","offer":{"budget":1997835,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,2030303],"weights":[14.476669311523445,13.608337402343755]}','a22b793d2c85484573d963488691d4ea674ada0f91976699a0bd442d6fa23460','741cc908864b26f21b2cae46047c5f25e041569d635e31ea1fd9d311d5eb941c');
INSERT INTO "events" VALUES(1,14,'settled',4,'2026-11-16T21:07:55.306+00:00','{"delivered":["client-2"],"evaluation":{"accuracy":0.13333333333333333,"loss":2.302787017822266,"test_accuracy":0.16666666666666666,"test_loss":2.282038116455078},"evidence":{"client-2":{"loss_after":1.883744239807129,"loss_before":2.4978214263916017,"samples":40}},"void":["client-1"]}','741cc908864b26f21b2cae46047c5f25e041569d635e31ea1fd9d311d5eb941c','8c64ea113e5df0587f1ac062b532312bf8b2988990be92a1062c48b5bad438ea');
INSERT INTO "events" VALUES(1,15,'bids',5,'2026-11-16T21:07:55.309+00:00','{"bids":"968f1f8c2060412af0a9411ba1876fa0fd7a3270ab9be3edb206427de74a2c36"}','8c64ea113e5df0587f1ac062b532312bf8b2988990be92a1062c48b5bad438ea','108cc796500ebd53aba2bde12899a4fbf5dcd56b5c7a167f463d084f06bd369d');
INSERT INTO "events" VALUES(1,16,'awarded',5,'2026-11-16T21:07:55.309+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: too few rounds to plan on"},"fell_short":false,"menu":"72fe41a4a02e9fe376166e30d06d6675339afb7e84099080769502a9ca75b41d","offer":{"budget":2097690,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,2730020],"weights":[17.25992075602214,17.25992075602214]}','108cc796500ebd53aba2bde12899a4fbf5dcd56b5c7a167f463d084f06bd369d','eeb95b8ac7a80115065834788cbc9c3a560ada7719fd1f58a6166c82f1dfe717');
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
INSERT INTO "promises" VALUES(1,1,'client-4',0,861235);
INSERT INTO "promises" VALUES(1,2,'client-3',0,1032410);
INSERT INTO "promises" VALUES(1,3,'client-1',0,1169068);
INSERT INTO "promises" VALUES(1,4,'client-1',0,744365);
INSERT INTO "promises" VALUES(1,4,'client-2',1,699717);
INSERT INTO "promises" VALUES(1,5,'client-0',0,901480);
INSERT INTO "promises" VALUES(1,5,'client-5',1,901480);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	max_rounds INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (total > 0), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'simulator',30000000,14);
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
INSERT INTO "sealed" VALUES(1,1,'bids','b0e944c0c4224793fea4b3beee6c6103','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{"samples":[40.0,40.0,40.0,40.0,40.0,40.0]},"prices":[1252816,861235,1064301,983033,683574,1038760]}');
INSERT INTO "sealed" VALUES(1,1,'menu','f223c0e447d407f7aeede4f44762f947','[861236,1966067,3116281,4257205,6264081]');
INSERT INTO "sealed" VALUES(1,2,'bids','b7a1672d8e0f4892f666394c3b461f23','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{"samples":[40.0,40.0,40.0,40.0,40.0,40.0]},"prices":[1445716,1032410,1457920,801678,1415146,1223930]}');
INSERT INTO "sealed" VALUES(1,2,'menu','e49e3ac2c34ad09f7dc662f8f6ce7899','[1032411,2447861,4245439,5782865,7289601]');
INSERT INTO "sealed" VALUES(1,3,'bids','d9df2f22cad0d31ce46615be2ecfc363','{"clients":["client-0","client-1","client-2","client-4","client-5"],"columns":{"samples":[40.0,40.0,40.0,40.0,40.0]},"prices":[1266862,602049,1169068,1450549,1331999]}');
INSERT INTO "sealed" VALUES(1,3,'menu','9f11354eca46d2a4a3b42bb86ddd30ab','[1169069,2533725,3995998,5802197]');
INSERT INTO "sealed" VALUES(1,4,'bids','f8fbc573b4096ea25cb33e1d7f695df0','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{"samples":[40.0,40.0,40.0,40.0,40.0,40.0]},"prices":[1050489,563455,668590,1168522,974390,699717]}');
INSERT INTO "sealed" VALUES(1,4,'menu','a88b60d8036db72b1d554eb3c18ffde9','[711252,1444083,3188820,4201957,5842611]');
INSERT INTO "sealed" VALUES(1,5,'bids','e6231a2be707795e4e7815b8f439e790','{"clients":["client-0","client-2","client-3","client-4","client-5"],"columns":{"samples":[40.0,40.0,40.0,40.0,40.0]},"prices":[564970,1282923,1317413,1397159,637936]}');
INSERT INTO "sealed" VALUES(1,5,'menu','0e576d7d043ca70ef948988437d5d70c','[637937,1802962,4509675,8372297]');
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
INSERT INTO "settlements" VALUES(1,1,'client-4',861235,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-3',0,'it did not answer');
INSERT INTO "settlements" VALUES(1,3,'client-1',1169068,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-1',0,'it did not answer');
INSERT INTO "settlements" VALUES(1,4,'client-2',699717,NULL);
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
