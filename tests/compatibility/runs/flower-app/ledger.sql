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
INSERT INTO "closings" VALUES(1,0,60000000,0,0,0);
INSERT INTO "closings" VALUES(1,1,60000000,0,12000000,12000000);
INSERT INTO "closings" VALUES(1,2,60000000,12000000,12000000,24000000);
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
INSERT INTO "events" VALUES(1,1,'opened',NULL,'2026-11-16T21:09:46.684+00:00','{"approve_above":null,"config":{"allocator":{"n":3,"name":"fixed"},"budget":{"max_rounds":5,"total":60.0},"clients":{"absence_rate":0.0,"bids":"uniform(0.5, 1.5)","cost_by":"none","count":5,"drift":0.0,"epsilon":null,"failure_rate":0.0,"free_riders":0,"free_riding":"unchanged","label_noise":0.5,"late_rate":0.0,"noisy":0,"partition":"shards(2)","poisoners":0,"strategic":0,"strategy":"overbid(0.2)","valuation":"mixed"},"data":{"evaluation_samples":null,"held_out":"halves","name":"digits","path":null,"train_samples":null,"verify":true},"federation":{"engine":"flower-app","train_seconds":5.0,"workers":0},"ledger":{"approve_above":null,"client_cap":null,"key":null,"receipt":null,"retention":"keep","url":null},"mechanism":{"name":"bid-price-first"},"seed":0,"training":{"aggregation":"samples","algorithm":"fedsgd","average_last":10,"batch_size":50,"checkpoint_every":1,"evidence":false,"learning_rate":0.1,"local_epochs":1,"model":"mlp","momentum":0.0,"outliers":0.0,"precision":"float32","proximal":0.0,"weight_decay":0.0}},"keyed":false,"retention":"keep"}','0000000000000000000000000000000000000000000000000000000000000000','55cf00812249766d72e52f486b4b144a57d84e63ca25f45909a1bef041685fba');
INSERT INTO "events" VALUES(1,2,'settled',0,'2026-11-16T21:09:46.700+00:00','{"delivered":[],"evaluation":{"accuracy":0.0,"loss":1.0},"evidence":{},"void":[]}','55cf00812249766d72e52f486b4b144a57d84e63ca25f45909a1bef041685fba','b77828c4448eb047fcbd75127a64adfb70850ea1e68344632c8b1ef5622cfe41');
INSERT INTO "events" VALUES(1,3,'bids',1,'2026-11-16T21:09:46.705+00:00','{"bids":"71726baae7d96576eccba997b736a45ed35aef91764576ac0e7ef1093932fccf"}','b77828c4448eb047fcbd75127a64adfb70850ea1e68344632c8b1ef5622cfe41','074e3396453e36c8243120a1ce425fcc70689b236c6d670c5bdaef0580d289c9');
INSERT INTO "events" VALUES(1,4,'awarded',1,'2026-11-16T21:09:46.705+00:00','{"belief":null,"fell_short":false,"menu":"1cfb880f57eb79224223abba6cc422225e8f32fd74935d00993a37b9c9c0e9e7","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[60000000,5,0],"weights":null}','074e3396453e36c8243120a1ce425fcc70689b236c6d670c5bdaef0580d289c9','e2bf99dce7ba81a48c3adef74377e25f2dbc999d9c613dff03e716adedbb7d09');
INSERT INTO "events" VALUES(1,5,'settled',1,'2026-11-16T21:09:46.714+00:00','{"delivered":["key-05bdcf67805f2cb94445","key-712ce3dd9ec28ecf796b","key-ddc0a6387c49e45d3700"],"evaluation":{"accuracy":0.0036964569526234587,"loss":0.9963035430473766},"evidence":{"key-05bdcf67805f2cb94445":{"samples":10},"key-712ce3dd9ec28ecf796b":{"samples":20},"key-ddc0a6387c49e45d3700":{"samples":30}},"void":[]}','e2bf99dce7ba81a48c3adef74377e25f2dbc999d9c613dff03e716adedbb7d09','5765dd93d2bb4e751cb25c80f772902e7197ba98aed0827beffce832d8bfd9ec');
INSERT INTO "events" VALUES(1,6,'bids',2,'2026-11-16T21:09:46.719+00:00','{"bids":"850ac7a307eb0c2758ac2ff2c350a7fff3f097ab88f958dd2f87f5b724630fe9"}','5765dd93d2bb4e751cb25c80f772902e7197ba98aed0827beffce832d8bfd9ec','3e67141d03868ee7c401b3009609ea804ad56313057d6e08a186ac75e74e8b08');
INSERT INTO "events" VALUES(1,7,'awarded',2,'2026-11-16T21:09:46.719+00:00','{"belief":null,"fell_short":false,"menu":"4170eb713d963427a50dd02b08917f7c3b27ca0d214dfd74239c365ed16751f0","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[60000000,5,12000000],"weights":null}','3e67141d03868ee7c401b3009609ea804ad56313057d6e08a186ac75e74e8b08','27729b469ed22b246ea5cc58ae8e57d92bb9bd4cd060c68643b67ba4e962ade7');
INSERT INTO "events" VALUES(1,8,'settled',2,'2026-11-16T21:09:46.729+00:00','{"delivered":["key-05bdcf67805f2cb94445","key-712ce3dd9ec28ecf796b","key-ddc0a6387c49e45d3700"],"evaluation":{"accuracy":0.007966142510350879,"loss":0.9920338574896491},"evidence":{"key-05bdcf67805f2cb94445":{"samples":10},"key-712ce3dd9ec28ecf796b":{"samples":20},"key-ddc0a6387c49e45d3700":{"samples":30}},"void":[]}','27729b469ed22b246ea5cc58ae8e57d92bb9bd4cd060c68643b67ba4e962ade7','7a8183c5efbe3599c5aff62fa36cae4f7da9145af5629a47ef9fbf7c50f83c72');
INSERT INTO "events" VALUES(1,9,'bids',3,'2026-11-16T21:09:46.735+00:00','{"bids":"2ba948093f9cc226a9e6a9d4634f55ecf1dfe9ea30ac2a299e2d7eca650d8875"}','7a8183c5efbe3599c5aff62fa36cae4f7da9145af5629a47ef9fbf7c50f83c72','993e43fb11a7c869248564b83b0595669b7d5209802f3b7b0afb0d075e64b884');
INSERT INTO "events" VALUES(1,10,'awarded',3,'2026-11-16T21:09:46.735+00:00','{"belief":null,"fell_short":false,"menu":"1bb0fb9b6b0cd2ad6d331977c17c38a5d87c5a8d7271985fa05e5fd582d59d65","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[60000000,5,24000000],"weights":null}','993e43fb11a7c869248564b83b0595669b7d5209802f3b7b0afb0d075e64b884','54aaeefdabce923ba1e662b24084d308c21aede96ec02c459e141d0430021729');
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
INSERT INTO "promises" VALUES(1,1,'key-05bdcf67805f2cb94445',0,4000000);
INSERT INTO "promises" VALUES(1,1,'key-712ce3dd9ec28ecf796b',1,4000000);
INSERT INTO "promises" VALUES(1,1,'key-ddc0a6387c49e45d3700',2,4000000);
INSERT INTO "promises" VALUES(1,2,'key-05bdcf67805f2cb94445',0,4000000);
INSERT INTO "promises" VALUES(1,2,'key-712ce3dd9ec28ecf796b',1,4000000);
INSERT INTO "promises" VALUES(1,2,'key-ddc0a6387c49e45d3700',2,4000000);
INSERT INTO "promises" VALUES(1,3,'key-05bdcf67805f2cb94445',0,4000000);
INSERT INTO "promises" VALUES(1,3,'key-712ce3dd9ec28ecf796b',1,4000000);
INSERT INTO "promises" VALUES(1,3,'key-ddc0a6387c49e45d3700',2,4000000);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	max_rounds INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (total > 0), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'flower-app',60000000,5);
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
INSERT INTO "sealed" VALUES(1,1,'bids','5349d354eab8609bcf4b35c1c9822fc8','{"clients":["key-05bdcf67805f2cb94445","key-19812f395df588fa9d48","key-712ce3dd9ec28ecf796b","key-7bee314fad2bf4223fdf","key-ddc0a6387c49e45d3700"],"columns":{"samples":[10.0,40.0,20.0,50.0,30.0]},"prices":[1000000,4000000,2000000,5000000,3000000]}');
INSERT INTO "sealed" VALUES(1,1,'menu','d06091ead0d7303060e0f96ab7ed79ba','[2000000,6000000,12000000,20000000]');
INSERT INTO "sealed" VALUES(1,2,'bids','09bd5e8eed9d221248bce40b9c078316','{"clients":["key-05bdcf67805f2cb94445","key-19812f395df588fa9d48","key-712ce3dd9ec28ecf796b","key-7bee314fad2bf4223fdf","key-ddc0a6387c49e45d3700"],"columns":{"samples":[10.0,40.0,20.0,50.0,30.0]},"prices":[1000000,4000000,2000000,5000000,3000000]}');
INSERT INTO "sealed" VALUES(1,2,'menu','51402282fe9b8de64ee1dab17d13c54e','[2000000,6000000,12000000,20000000]');
INSERT INTO "sealed" VALUES(1,3,'bids','9f3743c30e0597fc81a66457d583454f','{"clients":["key-05bdcf67805f2cb94445","key-19812f395df588fa9d48","key-712ce3dd9ec28ecf796b","key-7bee314fad2bf4223fdf","key-ddc0a6387c49e45d3700"],"columns":{"samples":[10.0,40.0,20.0,50.0,30.0]},"prices":[1000000,4000000,2000000,5000000,3000000]}');
INSERT INTO "sealed" VALUES(1,3,'menu','dd0913c5044c10029d451159f8da7c29','[2000000,6000000,12000000,20000000]');
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
INSERT INTO "settlements" VALUES(1,1,'key-05bdcf67805f2cb94445',4000000,NULL);
INSERT INTO "settlements" VALUES(1,1,'key-712ce3dd9ec28ecf796b',4000000,NULL);
INSERT INTO "settlements" VALUES(1,1,'key-ddc0a6387c49e45d3700',4000000,NULL);
INSERT INTO "settlements" VALUES(1,2,'key-05bdcf67805f2cb94445',4000000,NULL);
INSERT INTO "settlements" VALUES(1,2,'key-712ce3dd9ec28ecf796b',4000000,NULL);
INSERT INTO "settlements" VALUES(1,2,'key-ddc0a6387c49e45d3700',4000000,NULL);
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
