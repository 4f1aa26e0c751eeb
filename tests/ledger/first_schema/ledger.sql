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
INSERT INTO "closings" VALUES(1,1,20000000,0,1667664,1667664);
INSERT INTO "closings" VALUES(1,2,20000000,1667664,0,1667664);
INSERT INTO "closings" VALUES(1,3,20000000,1667664,2780892,4448556);
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
INSERT INTO "events" VALUES(1,1,'opened',NULL,'2026-11-15T23:09:56.030+00:00','{"config":{"allocator":{"name":"even"},"budget":{"max_rounds":6,"total":20.0},"clients":{"absence_rate":0.0,"bids":"uniform(0.5, 1.5)","cost_by":"none","count":5,"drift":0.0,"failure_rate":0.3,"free_riders":0,"free_riding":"unchanged","label_noise":0.5,"late_rate":0.0,"noisy":0,"partition":"shards(2)","poisoners":0,"strategic":0,"strategy":"overbid(0.2)"},"data":{"evaluation_samples":null,"held_out":"halves","name":"digits","path":null,"train_samples":null,"verify":true},"federation":{"engine":"synthetic","workers":0},"ledger":{"approve_above":null,"client_cap":null,"key":null,"receipt":null,"retention":"keep","url":null},"mechanism":{"name":"bid-price-first"},"seed":0,"training":{"aggregation":"samples","algorithm":"fedsgd","average_last":10,"batch_size":50,"checkpoint_every":1,"evidence":false,"learning_rate":0.1,"local_epochs":1,"model":"mlp","momentum":0.0,"precision":"float32","proximal":0.0,"weight_decay":0.0}},"keyed":false,"retention":"keep"}','0000000000000000000000000000000000000000000000000000000000000000','2734fe85504ebbd8cd7f76f0a29e84b4c09414c525ff75ae7a81359f24807dee');
INSERT INTO "events" VALUES(1,2,'settled',0,'2026-11-15T23:09:56.057+00:00','{"delivered":[],"evaluation":{"accuracy":0.1,"loss":2.3025850929940455},"evidence":{},"void":[]}','2734fe85504ebbd8cd7f76f0a29e84b4c09414c525ff75ae7a81359f24807dee','1ad12eb1c098ea465cbed864c921329d939becb95fd0f6d824d956893c7700c2');
INSERT INTO "events" VALUES(1,3,'bids',1,'2026-11-15T23:09:56.069+00:00','{"bids":"17ac33cf7c3876d17113bb42a7250c80f0300241519e8fa265fb5ac4ca2c97e0"}','1ad12eb1c098ea465cbed864c921329d939becb95fd0f6d824d956893c7700c2','e2ce7754fcec3785758f4b9cba0c8ed04a881fde2fb5fd3a96a506dcdec3d94b');
INSERT INTO "events" VALUES(1,4,'awarded',1,'2026-11-15T23:09:56.070+00:00','{"belief":null,"fell_short":false,"menu":"72231961210a7ac033219f7272313b01982512d28531a9c0047fbd85b0e2d99c","offer":{"budget":3333333,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[20000000,6,0],"weights":null}','e2ce7754fcec3785758f4b9cba0c8ed04a881fde2fb5fd3a96a506dcdec3d94b','3654be1123421ce610bd31dae0e54c3ae55ef470e695b3c9c005231d00fdeadd');
INSERT INTO "events" VALUES(1,5,'settled',1,'2026-11-15T23:09:56.079+00:00','{"delivered":["client-2","client-1"],"evaluation":{"accuracy":0.07462368155952172,"loss":2.595297374969541},"evidence":{"client-1":{},"client-2":{}},"void":[]}','3654be1123421ce610bd31dae0e54c3ae55ef470e695b3c9c005231d00fdeadd','eee0f80af053673f8b314db81afa6cae78c8a9912ade9cfbbf0f69b142d2cccd');
INSERT INTO "events" VALUES(1,6,'bids',2,'2026-11-15T23:09:56.090+00:00','{"bids":"0b3e7a85aa007d484454eecda4d2c976e658ef348095a17004adb74c8cccc4fb"}','eee0f80af053673f8b314db81afa6cae78c8a9912ade9cfbbf0f69b142d2cccd','30d53f84a0d38c6aaee5fa698652d6c080fc2c1a00315bf0779c7620b136e6f0');
INSERT INTO "events" VALUES(1,7,'awarded',2,'2026-11-15T23:09:56.090+00:00','{"belief":null,"fell_short":false,"menu":"abae9bdecb3b1ef9cc0c78a23997ffdd07518949c94b23983ece31b76309e36d","offer":{"budget":3333333,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[20000000,6,1667664],"weights":null}','30d53f84a0d38c6aaee5fa698652d6c080fc2c1a00315bf0779c7620b136e6f0','d5a5fa26bc2327658f21ce27573c1c498822cb60ffe9cd8270554a2d3887647f');
INSERT INTO "events" VALUES(1,8,'settled',2,'2026-11-15T23:09:56.097+00:00','{"delivered":[],"evaluation":{"accuracy":0.07462368155952172,"loss":2.595297374969541},"evidence":{},"void":["client-3","client-4"]}','d5a5fa26bc2327658f21ce27573c1c498822cb60ffe9cd8270554a2d3887647f','323e2bcc7bbec0452be030f3784abff142b145e6679c4a82ba212e106ce1ad9a');
INSERT INTO "events" VALUES(1,9,'bids',3,'2026-11-15T23:09:56.102+00:00','{"bids":"88895e7551126dc4b4bc2d8ec3072619a43d4475cfd227d7510f5d2e374f11a4"}','323e2bcc7bbec0452be030f3784abff142b145e6679c4a82ba212e106ce1ad9a','a78f8dc0e2ba92585801448a6d34296095ae1868cb500ca5047f9d18b3ae5c01');
INSERT INTO "events" VALUES(1,10,'awarded',3,'2026-11-15T23:09:56.103+00:00','{"belief":null,"fell_short":false,"menu":"e7558ab394a62719d253af53be4f081069162823df2dbdbce867df3fe2d56664","offer":{"budget":3333333,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[20000000,6,1667664],"weights":null}','a78f8dc0e2ba92585801448a6d34296095ae1868cb500ca5047f9d18b3ae5c01','ec19907bf7c73c902416d4999cddfc97e4eea707c55db1fd9c4f10459acf3da1');
INSERT INTO "events" VALUES(1,11,'settled',3,'2026-11-15T23:09:56.113+00:00','{"delivered":["client-2","client-1"],"evaluation":{"accuracy":0.12272742582286993,"loss":2.0977894329032036},"evidence":{"client-1":{},"client-2":{}},"void":[]}','ec19907bf7c73c902416d4999cddfc97e4eea707c55db1fd9c4f10459acf3da1','a5737a6e12b0f37265ad1fe461668b84ddc1608a333037378ee26ab2c09dc7ff');
INSERT INTO "events" VALUES(1,12,'bids',4,'2026-11-15T23:09:56.119+00:00','{"bids":"29f5ccb1050b8b78187d64bfe79ba3630ad7bc6ac97585ea34e6f9531c77bfc7"}','a5737a6e12b0f37265ad1fe461668b84ddc1608a333037378ee26ab2c09dc7ff','0f2c9194df325a38535422219e28ca71ec87a9f91a631a0971996084ba4c9c9e');
INSERT INTO "events" VALUES(1,13,'awarded',4,'2026-11-15T23:09:56.119+00:00','{"belief":null,"fell_short":false,"menu":"6b9d859d668e82362588eeff1575f3f66ba254a66ec3bd2208d32aea69eda058","offer":{"budget":3333333,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[20000000,6,4448556],"weights":null}','0f2c9194df325a38535422219e28ca71ec87a9f91a631a0971996084ba4c9c9e','6311b3c2a030e3e8ab430588cfdb0e1c8859ba142693dae75f06c58e034e3a7d');
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
INSERT INTO "promises" VALUES(1,1,'client-1',1,833832);
INSERT INTO "promises" VALUES(1,1,'client-2',0,833832);
INSERT INTO "promises" VALUES(1,2,'client-3',0,789177);
INSERT INTO "promises" VALUES(1,2,'client-4',1,789177);
INSERT INTO "promises" VALUES(1,3,'client-1',1,1390446);
INSERT INTO "promises" VALUES(1,3,'client-2',0,1390446);
INSERT INTO "promises" VALUES(1,4,'client-0',0,917488);
INSERT INTO "promises" VALUES(1,4,'client-1',2,917488);
INSERT INTO "promises" VALUES(1,4,'client-4',1,917488);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	max_rounds INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (total > 0), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'old',20000000,6);
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
INSERT INTO "sealed" VALUES(1,1,'bids','4d4cb07df919a1f4ba2006c017579e54','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{},"prices":[1348650,754258,727198,1425394,833832]}');
INSERT INTO "sealed" VALUES(1,1,'menu','e5093c1ee7198186c70c8a22dac94b71','[754258,1667664,4045950,5701576]');
INSERT INTO "sealed" VALUES(1,2,'bids','68afb17a594ff23ca884b5af1a8df95e','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{},"prices":[1381704,789177,1371036,625066,676317]}');
INSERT INTO "sealed" VALUES(1,2,'menu','239201c19ed3b11fd0a2a85a82dca712','[676317,1578354,4113108,5526816]');
INSERT INTO "sealed" VALUES(1,3,'bids','39e1c5a9ff5ff681cfb0ecea196506bb','{"clients":["client-0","client-1","client-2"],"columns":{},"prices":[1390446,1164787,680107]}');
INSERT INTO "sealed" VALUES(1,3,'menu','02c291706095742a9c8138833dc788b0','[1164787,2780892]');
INSERT INTO "sealed" VALUES(1,4,'bids','07967e137a8bba64cc189ea275b16586','{"clients":["client-0","client-1","client-2","client-3","client-4"],"columns":{},"prices":[724797,910087,917488,1021819,761078]}');
INSERT INTO "sealed" VALUES(1,4,'menu','e1e86186b1d2ca2463e7bcaaaafc3eca','[761078,1820174,2752464,4087276]');
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
INSERT INTO "settlements" VALUES(1,1,'client-1',833832,NULL);
INSERT INTO "settlements" VALUES(1,1,'client-2',833832,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-3',0,'it did not answer');
INSERT INTO "settlements" VALUES(1,2,'client-4',0,'it did not answer');
INSERT INTO "settlements" VALUES(1,3,'client-1',1390446,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-2',1390446,NULL);
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
