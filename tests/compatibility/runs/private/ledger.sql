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
INSERT INTO "closings" VALUES(1,1,30000000,0,2110813,2110813);
INSERT INTO "closings" VALUES(1,2,30000000,2110813,1233456,3344269);
INSERT INTO "closings" VALUES(1,3,30000000,3344269,1286339,4630608);
INSERT INTO "closings" VALUES(1,4,30000000,4630608,1620308,6250916);
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
INSERT INTO "events" VALUES(1,1,'opened',NULL,'2026-11-16T21:08:09.075+00:00','{"approve_above":null,"config":{"allocator":{"name":"even"},"budget":{"max_rounds":14,"total":30.0},"clients":{"absence_rate":0.0,"bids":"uniform(0.5, 1.5)","cost_by":"none","count":6,"drift":0.0,"epsilon":null,"failure_rate":0.0,"free_riders":0,"free_riding":"unchanged","label_noise":0.5,"late_rate":0.0,"noisy":0,"partition":"shards(2)","poisoners":0,"strategic":0,"strategy":"overbid(0.2)","valuation":"mixed"},"data":{"evaluation_samples":60,"held_out":"halves","name":"digits","path":null,"train_samples":240,"verify":true},"federation":{"engine":"simulator","workers":1},"ledger":{"approve_above":null,"client_cap":null,"key":null,"receipt":null,"retention":"keep","url":null},"mechanism":{"name":"fl-market"},"seed":0,"training":{"aggregation":"samples","algorithm":"fedsgd","average_last":3,"batch_size":50,"checkpoint_every":1,"evidence":false,"learning_rate":0.1,"local_epochs":1,"model":"linear","momentum":0.0,"outliers":0.0,"precision":"float32","proximal":0.0,"weight_decay":0.0}},"keyed":false,"retention":"keep"}','0000000000000000000000000000000000000000000000000000000000000000','ba8b06d6730ccd740c01f67d74ed0e6a9ff7642a7f46b221a0e3f247287f4bb9');
INSERT INTO "events" VALUES(1,2,'settled',0,'2026-11-16T21:08:09.107+00:00','{"delivered":[],"evaluation":{"accuracy":0.11666666666666667,"loss":2.345600891113281,"test_accuracy":0.11666666666666667,"test_loss":2.3446436564127606},"evidence":{},"void":[]}','ba8b06d6730ccd740c01f67d74ed0e6a9ff7642a7f46b221a0e3f247287f4bb9','19c8a4272f525f0a9dc3358830a32ed3bda677fe53b7037878521219999ac650');
INSERT INTO "events" VALUES(1,3,'bids',1,'2026-11-16T21:08:09.115+00:00','{"bids":"33a4f09e8d833ef3cbd23fd71872c7b232f1b1f45c26ba57ecf1232121547aa5"}','19c8a4272f525f0a9dc3358830a32ed3bda677fe53b7037878521219999ac650','9fddcef7b20dc04b7747ad02b0455f717241d89292c89ed2a6886a21c5410ba0');
INSERT INTO "events" VALUES(1,4,'awarded',1,'2026-11-16T21:08:09.115+00:00','{"belief":null,"fell_short":false,"menu":"207594b8a765e1073710c3af120e6a69178c4bd7f0775a94614c5e5148cb5a56","offer":{"budget":2142857,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":{"client-2":0.26092087428809896,"client-4":0.9772318810671846,"client-5":0.39276280250628737},"purse":[30000000,14,0],"weights":[0.3277590098355186,0.33890765683114804,0.3333333333333335]}','9fddcef7b20dc04b7747ad02b0455f717241d89292c89ed2a6886a21c5410ba0','4dedea241a471dd21d68a8521d2c75bd25649c8e9b5de8276cce8bc76334adcc');
INSERT INTO "events" VALUES(1,5,'settled',1,'2026-11-16T21:08:10.926+00:00','{"delivered":["client-2","client-4","client-5"],"evaluation":{"accuracy":0.1,"loss":2.36055425008138,"test_accuracy":0.08333333333333333,"test_loss":2.3495053609212238},"evidence":{"client-2":{"samples":40},"client-4":{"samples":40},"client-5":{"samples":40}},"void":[]}','4dedea241a471dd21d68a8521d2c75bd25649c8e9b5de8276cce8bc76334adcc','5d089686d2f2d654eed93955693078bc5cc2050caced70643e8c6b655d25d16d');
INSERT INTO "events" VALUES(1,6,'bids',2,'2026-11-16T21:08:10.931+00:00','{"bids":"85db68d54ad20cd8446f70d03bb2faaefd9f96af3fc6c016dd5afffd3cec4277"}','5d089686d2f2d654eed93955693078bc5cc2050caced70643e8c6b655d25d16d','58d06e386b91e2f2336df9f97b835342fcf4ca6a518b5d523455e75c1ac863bf');
INSERT INTO "events" VALUES(1,7,'awarded',2,'2026-11-16T21:08:10.931+00:00','{"belief":null,"fell_short":false,"menu":"e8372da8f281f4708fa7892cb1d6861eb51b8a5b441223b90832264fad0dd4a5","offer":{"budget":2142857,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":{"client-2":0.26092087428809896,"client-3":0.5269987701756673},"purse":[30000000,14,2110813],"weights":[0.49322487992652747,0.5067751200734726]}','58d06e386b91e2f2336df9f97b835342fcf4ca6a518b5d523455e75c1ac863bf','64e479568fabbe13975b6c97a684bd1244f755753d01120e0e3e73b69dffb8fc');
INSERT INTO "events" VALUES(1,8,'settled',2,'2026-11-16T21:08:10.941+00:00','{"delivered":["client-2","client-3"],"evaluation":{"accuracy":0.08333333333333333,"loss":2.364856211344401,"test_accuracy":0.05,"test_loss":2.351151529947917},"evidence":{"client-2":{"samples":40},"client-3":{"samples":40}},"void":[]}','64e479568fabbe13975b6c97a684bd1244f755753d01120e0e3e73b69dffb8fc','be7d1c77d36248625b2b158a2d2709f20db1e0f3990ee86431ed29a1318c6ae1');
INSERT INTO "events" VALUES(1,9,'bids',3,'2026-11-16T21:08:10.945+00:00','{"bids":"63b4100e0c0fd7a3ebf152ad5151e7ba15b512bba5e0fc72ce1e6189b36dc879"}','be7d1c77d36248625b2b158a2d2709f20db1e0f3990ee86431ed29a1318c6ae1','833fc3b56b5982b498bd1f00c6ec17e33884616c4dc98a71ba49cfcb71243068');
INSERT INTO "events" VALUES(1,10,'awarded',3,'2026-11-16T21:08:10.945+00:00','{"belief":null,"fell_short":false,"menu":"455f8b5ff8dd3e369317b73068fe8b14c7d48eb404215740cdeab961767eb55c","offer":{"budget":2142857,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":{"client-1":0.7818788611626566},"purse":[30000000,14,3344269],"weights":[1.0]}','833fc3b56b5982b498bd1f00c6ec17e33884616c4dc98a71ba49cfcb71243068','8181e064a5d0d1d3bb7d0b75356bd4dcb3a50469b788e007542e43adf1f84868');
INSERT INTO "events" VALUES(1,11,'settled',3,'2026-11-16T21:08:10.952+00:00','{"delivered":["client-1"],"evaluation":{"accuracy":0.08333333333333333,"loss":2.3658159891764323,"test_accuracy":0.06666666666666667,"test_loss":2.3539385477701824},"evidence":{"client-1":{"samples":40}},"void":[]}','8181e064a5d0d1d3bb7d0b75356bd4dcb3a50469b788e007542e43adf1f84868','574c4342a751349dc8addafe872ebd3250d4a78702f5ca62266af7a31f12a118');
INSERT INTO "events" VALUES(1,12,'bids',4,'2026-11-16T21:08:10.956+00:00','{"bids":"f3da111c67ac7b33c366ea21b7b3c7d02198df7853901fd77eae31afc75a8751"}','574c4342a751349dc8addafe872ebd3250d4a78702f5ca62266af7a31f12a118','fdc72fbaa594af2125e94a1625f198ff389782995fb1b44d2b9d76d1041bddd4');
INSERT INTO "events" VALUES(1,13,'awarded',4,'2026-11-16T21:08:10.956+00:00','{"belief":null,"fell_short":false,"menu":"47babeab468ad5c3b8dfa59b511cb5aa8a8ceb90b45c819e1f640f64b6f73233","offer":{"budget":2142857,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":{"client-1":0.7818788611626566,"client-3":0.5269987701756673,"client-5":0.39276280250628737},"purse":[30000000,14,4630608],"weights":[0.33133416778288627,0.3353324988837814,0.3333333333333324]}','fdc72fbaa594af2125e94a1625f198ff389782995fb1b44d2b9d76d1041bddd4','0b9cdf39a28e93c1d91e92d08293f15e1ee7f4f17098e20489fb8ef85ada0403');
INSERT INTO "events" VALUES(1,14,'settled',4,'2026-11-16T21:08:10.969+00:00','{"delivered":["client-1","client-3","client-5"],"evaluation":{"accuracy":0.08333333333333333,"loss":2.3807393391927083,"test_accuracy":0.1,"test_loss":2.358942159016927},"evidence":{"client-1":{"samples":40},"client-3":{"samples":40},"client-5":{"samples":40}},"void":[]}','0b9cdf39a28e93c1d91e92d08293f15e1ee7f4f17098e20489fb8ef85ada0403','f55c62ef3edf88a756f072fe3ca63689b81af3d20bbc2cec1968590a5c9da6c6');
INSERT INTO "events" VALUES(1,15,'bids',5,'2026-11-16T21:08:10.973+00:00','{"bids":"1b74dca462085915eee658424ea3fbedc15cca7d4dcc2de38679547011e79d72"}','f55c62ef3edf88a756f072fe3ca63689b81af3d20bbc2cec1968590a5c9da6c6','93b4235259b448118eed478603fd77f2d70f931dead8ac86d13f2d6d701d78dc');
INSERT INTO "events" VALUES(1,16,'awarded',5,'2026-11-16T21:08:10.973+00:00','{"belief":null,"fell_short":false,"menu":"bf503c0e54bd5574610648032079c860fac643b9b89267e3212101fb019dc92d","offer":{"budget":2142857,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":{"client-5":0.39276280250628737},"purse":[30000000,14,6250916],"weights":[1.0]}','93b4235259b448118eed478603fd77f2d70f931dead8ac86d13f2d6d701d78dc','ff94d08d55c14677545d870bbb9e54dc9196b79b04443e760c4cb2ec3c0a5f72');
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
INSERT INTO "promises" VALUES(1,1,'client-2',0,337697);
INSERT INTO "promises" VALUES(1,1,'client-4',1,1264783);
INSERT INTO "promises" VALUES(1,1,'client-5',2,508333);
INSERT INTO "promises" VALUES(1,2,'client-2',0,408461);
INSERT INTO "promises" VALUES(1,2,'client-3',1,824995);
INSERT INTO "promises" VALUES(1,3,'client-1',0,1286339);
INSERT INTO "promises" VALUES(1,4,'client-1',1,744508);
INSERT INTO "promises" VALUES(1,4,'client-3',2,501810);
INSERT INTO "promises" VALUES(1,4,'client-5',0,373990);
INSERT INTO "promises" VALUES(1,5,'client-5',0,626564);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	max_rounds INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (total > 0), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'private',30000000,14);
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
INSERT INTO "sealed" VALUES(1,1,'bids','3d6c550c1b2b34fa42ba25bf1a596cf2','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{"epsilon":[0.5016951144984163,0.7818788611626566,0.26092087428809896,0.5269987701756673,0.9772318810671846,0.39276280250628737],"samples":[40.0,40.0,40.0,40.0,40.0,40.0]},"prices":[816233,1346763,72457,682069,1132744,499713]}');
INSERT INTO "sealed" VALUES(1,1,'menu','c73f27257fea03be813ec2f0c87dc95c','[302443,1575305,2110816,3510820,4581098]');
INSERT INTO "sealed" VALUES(1,2,'bids','bfc34f0b70a0ee87ac96d7e1c9c2ee63','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{"epsilon":[0.5016951144984163,0.7818788611626566,0.26092087428809896,0.5269987701756673,0.9772318810671846,0.39276280250628737],"samples":[40.0,40.0,40.0,40.0,40.0,40.0]},"prices":[1450617,1224000,99255,556237,2345026,1534094]}');
INSERT INTO "sealed" VALUES(1,2,'menu','546b39e0bd62aee8814e85345ef1e389','[275397,1233457,3766986,7364564,11908031]');
INSERT INTO "sealed" VALUES(1,3,'bids','e6c88ad80ba7dbf6460e4114c2db78da','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{"epsilon":[0.5016951144984163,0.7818788611626566,0.26092087428809896,0.5269987701756673,0.9772318810671846,0.39276280250628737],"samples":[40.0,40.0,40.0,40.0,40.0,40.0]},"prices":[825384,941458,1194329,1807230,2403692,1669549]}');
INSERT INTO "sealed" VALUES(1,3,'menu','ccdc28235459e38ff832572b3c46162d','[1286340,3157201,7752952,11850350,14558605]');
INSERT INTO "sealed" VALUES(1,4,'bids','af4a273c2e9c156b6557ed60cd74be16','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{"epsilon":[0.5016951144984163,0.7818788611626566,0.26092087428809896,0.5269987701756673,0.9772318810671846,0.39276280250628737],"samples":[40.0,40.0,40.0,40.0,40.0,40.0]},"prices":[1488132,344460,348898,324531,930525,107940]}');
INSERT INTO "sealed" VALUES(1,4,'menu','a634a2a54110ddce5adfdda1a2eb2707','[173034,723356,1620311,3582133,8720038]');
INSERT INTO "sealed" VALUES(1,5,'bids','5e2e0b6822711eb68f2b874ef11a25b7','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{"epsilon":[0.5016951144984163,0.7818788611626566,0.26092087428809896,0.5269987701756673,0.9772318810671846,0.39276280250628737],"samples":[40.0,40.0,40.0,40.0,40.0,40.0]},"prices":[800342,2232677,669483,1388550,2730697,98410]}');
INSERT INTO "sealed" VALUES(1,5,'menu','629988eaaa0be10457fafadaeb3f8a83','[626565,2295043,3044222,4701099,7594590]');
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
INSERT INTO "settlements" VALUES(1,1,'client-2',337697,NULL);
INSERT INTO "settlements" VALUES(1,1,'client-4',1264783,NULL);
INSERT INTO "settlements" VALUES(1,1,'client-5',508333,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-2',408461,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-3',824995,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-1',1286339,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-1',744508,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-3',501810,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-5',373990,NULL);
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
