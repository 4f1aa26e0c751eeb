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
INSERT INTO "closings" VALUES(1,1,30000000,0,1966066,1966066);
INSERT INTO "closings" VALUES(1,2,30000000,1966066,4245438,6211504);
INSERT INTO "closings" VALUES(1,3,30000000,6211504,3800586,10012090);
INSERT INTO "closings" VALUES(1,4,30000000,10012090,4201956,14214046);
INSERT INTO "closings" VALUES(1,5,30000000,14214046,6985795,21199841);
INSERT INTO "closings" VALUES(1,6,30000000,21199841,929438,22129279);
INSERT INTO "closings" VALUES(1,7,30000000,22129279,4933680,27062959);
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
INSERT INTO "events" VALUES(1,1,'opened',NULL,'2026-11-16T21:07:42.424+00:00','{"approve_above":null,"config":{"allocator":{"exploration_rounds":4,"name":"bara"},"budget":{"max_rounds":14,"total":30.0},"clients":{"absence_rate":0.0,"bids":"uniform(0.5, 1.5)","cost_by":"none","count":6,"drift":0.0,"epsilon":null,"failure_rate":0.0,"free_riders":0,"free_riding":"unchanged","label_noise":0.5,"late_rate":0.0,"noisy":0,"partition":"shards(2)","poisoners":0,"strategic":0,"strategy":"overbid(0.2)","valuation":"mixed"},"data":{"evaluation_samples":null,"held_out":"halves","name":"digits","path":null,"train_samples":null,"verify":true},"federation":{"engine":"synthetic","workers":0},"ledger":{"approve_above":null,"client_cap":null,"key":null,"receipt":null,"retention":"drop","url":null},"mechanism":{"name":"a-fl"},"seed":0,"training":{"aggregation":"samples","algorithm":"fedsgd","average_last":10,"batch_size":50,"checkpoint_every":1,"evidence":false,"learning_rate":0.1,"local_epochs":1,"model":"mlp","momentum":0.0,"outliers":0.0,"precision":"float32","proximal":0.0,"weight_decay":0.0}},"keyed":false,"retention":"drop"}','0000000000000000000000000000000000000000000000000000000000000000','df367b8a22a763594fca94b638b0d24f01ebdd0298522e789f74e29e5a94dcce');
INSERT INTO "events" VALUES(1,2,'settled',0,'2026-11-16T21:07:42.442+00:00','{"delivered":[],"evaluation":{"accuracy":0.1,"loss":2.3025850929940455},"evidence":{},"memories":{"allocator":"0823591506c70415feb38fdb2a751d855674111578cd7687778458d1cd796128","mechanism":"726a2c2c583eee5a0c7565eb0322939cfcff89098ca3ec85bf1eadb8a3a74fb7"},"void":[]}','df367b8a22a763594fca94b638b0d24f01ebdd0298522e789f74e29e5a94dcce','5fe91132dcb36428cad7403978e633647b0fab6a13c8127e16c3137a4cb30d66');
INSERT INTO "events" VALUES(1,3,'bids',1,'2026-11-16T21:07:42.448+00:00','{"bids":"434c39a24c7c0d3c7087920328ad7eb11865add13385ca302d7e6e304bea7344"}','5fe91132dcb36428cad7403978e633647b0fab6a13c8127e16c3137a4cb30d66','ac5fa07b96a49130defe2c2c4790fd682340a2617f2cbe9e628c0000a90e210e');
INSERT INTO "events" VALUES(1,4,'awarded',1,'2026-11-16T21:07:42.448+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[1.0,1.0,1.0,1.0,1.0],"mean":[0.0,0.0,0.0,0.0,0.0],"stage":"explore"},"fell_short":false,"menu":"d9f3a55cbcdf630fc526f8e48f6de863a5d1d2048847fc115c5dc1a5b5f5678e","offer":{"budget":9223372036854775807,"limit":2,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,14,0],"weights":null}','ac5fa07b96a49130defe2c2c4790fd682340a2617f2cbe9e628c0000a90e210e','ccb10e6d043d8b47cda4211731f88ffa0c3dc25dbb54961c14eb784552902c9a');
INSERT INTO "events" VALUES(1,5,'settled',1,'2026-11-16T21:07:42.450+00:00','{"delivered":["client-4","client-1"],"evaluation":{"accuracy":0.10032181540330086,"loss":2.299372106135852},"evidence":{"client-1":{},"client-4":{}},"memories":{"allocator":"1f22d260d84e6a7b6f243ce72776fe157d5f10d480c5f525ec53c97422a76d68","mechanism":"cf8a1c58dfe7641d65b62e9fc78e99afa4e01736377fda52963d6c5560e3c4a0"},"void":[]}','ccb10e6d043d8b47cda4211731f88ffa0c3dc25dbb54961c14eb784552902c9a','de862e686f2c4fcefa9b276fedefab4c5d87551e08397dd27c24848f19513ec8');
INSERT INTO "events" VALUES(1,6,'bids',2,'2026-11-16T21:07:42.453+00:00','{"bids":"4020417b21b5d7ce71949f3edd87c286f8aedb40fd99592ae6ce79ded14b5149"}','de862e686f2c4fcefa9b276fedefab4c5d87551e08397dd27c24848f19513ec8','1e4f1f856248bbc1c5ddb5e15ec8a674fc37aa15a9aa42c87f454423920f82d0');
INSERT INTO "events" VALUES(1,7,'awarded',2,'2026-11-16T21:07:42.453+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.8903210146596604,0.10436038093506031,0.8903210146596604,0.9990448291302001,0.9999996136792363],"estimate":0.10450541564621196,"mean":[0.047348650249515144,0.10341896026601607,0.047348650249515144,0.004543911992609759,9.140439771897582e-05],"stage":"explore"},"fell_short":false,"menu":"50c0ea051047f009ac7f6d918e07751b6971d808d01380423bc16a3daeabf864","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,14,1966066],"weights":null}','1e4f1f856248bbc1c5ddb5e15ec8a674fc37aa15a9aa42c87f454423920f82d0','65c6623b06503864c3094fd0ffdaf8bf15819cc8f26744dea6a84b5767fa7a80');
INSERT INTO "events" VALUES(1,8,'settled',2,'2026-11-16T21:07:42.455+00:00','{"delivered":["client-3","client-1","client-5"],"evaluation":{"accuracy":0.1354164709799441,"loss":1.9994002790785257},"evidence":{"client-1":{},"client-3":{},"client-5":{}},"memories":{"allocator":"19fa5590030b1c5f7540fa7ebbef4f62966a6dfebcd25e5b8964ae8820603500","mechanism":"d0f96c1f82683f847607fa5922c833af7ba2e3b36e5b0c2f0653f83124f6a46b"},"void":[]}','65c6623b06503864c3094fd0ffdaf8bf15819cc8f26744dea6a84b5767fa7a80','4ca19edf84404b249ffad0bb28ec048f94457ed7378a78f87547d9758f7babeb');
INSERT INTO "events" VALUES(1,9,'bids',3,'2026-11-16T21:07:42.457+00:00','{"bids":"210eb115f33f6477c54ed0c7ef5926070cba3afd0fafa7176ad92f91f928b55b"}','4ca19edf84404b249ffad0bb28ec048f94457ed7378a78f87547d9758f7babeb','d8db45d478075d216c1fbf247f68966a88f4a31c60eddeb1278c49a54537406e');
INSERT INTO "events" VALUES(1,10,'awarded',3,'2026-11-16T21:07:42.457+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.8715802683178342,0.1088542759892633,0.10423790394080044,0.8714319742327375,0.9988193882903221],"estimate":0.34566258903650277,"mean":[-0.01336935060289237,0.10521947755833323,0.34177505987346896,0.16721998056416074,0.016263737467816262],"stage":"explore"},"fell_short":false,"menu":"2428f74e15daf273f258e222dff0d0d02666c6cf62aceab1744e4b24a6a6a50b","offer":{"budget":9223372036854775807,"limit":3,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,14,6211504],"weights":null}','d8db45d478075d216c1fbf247f68966a88f4a31c60eddeb1278c49a54537406e','1b50b828ecfa6b155d1a1c47b2f93a1e699bb5c44df9796b85442dbb6685072e');
INSERT INTO "events" VALUES(1,11,'settled',3,'2026-11-16T21:07:42.459+00:00','{"delivered":["client-1","client-2","client-3"],"evaluation":{"accuracy":0.12800817845534163,"loss":2.0556611229213098},"evidence":{"client-1":{},"client-2":{},"client-3":{}},"memories":{"allocator":"80501fffb49679e866d348caa390e268539ce0db3a073e085e44fc8d6c92e5d1","mechanism":"eaf8beca58f638f49bf0544f345d1c863905e9866176296d597d1e9ade3944f9"},"void":[]}','1b50b828ecfa6b155d1a1c47b2f93a1e699bb5c44df9796b85442dbb6685072e','3c0928c3dff4ad61e9e91bc68823236b4e95c3af1ffb512c53290d9d85986b25');
INSERT INTO "events" VALUES(1,12,'bids',4,'2026-11-16T21:07:42.462+00:00','{"bids":"4321b294a7f8b125095adc605c10e9f93b9ea49ea5ea92c855afe881e8a89cca"}','3c0928c3dff4ad61e9e91bc68823236b4e95c3af1ffb512c53290d9d85986b25','c437d3fa17e425712f0c3deb1c39b70da199adcfc7f8ce4979ebd154b8b957bd');
INSERT INTO "events" VALUES(1,13,'awarded',4,'2026-11-16T21:07:42.462+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.8716094205218969,0.1132451468661288,0.07875405827748883,0.8706106648295588,0.9988123451471305],"estimate":0.0,"mean":[0.01921084469152897,0.09665533512753602,0.16371688414631877,0.070406424883735,0.006665200199877157],"stage":"exploit"},"fell_short":false,"menu":"4d2b6b70f06fb453a188d079df8d2bd02f3b251cadbf41332608fb51fd78f797","offer":{"budget":9223372036854775807,"limit":4,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,14,10012090],"weights":null}','c437d3fa17e425712f0c3deb1c39b70da199adcfc7f8ce4979ebd154b8b957bd','2a49f656ad676a01e4883b7d078e3720945b746245e162080942d1d01dac1111');
INSERT INTO "events" VALUES(1,14,'settled',4,'2026-11-16T21:07:42.464+00:00','{"delivered":["client-1","client-2","client-5","client-4"],"evaluation":{"accuracy":0.1962652824067084,"loss":1.628288053215403},"evidence":{"client-1":{},"client-2":{},"client-4":{},"client-5":{}},"memories":{"allocator":"761193b6a71fc45c9bd8c11e768a20c44a9fe2a6ee3dd9b98306e2286fd4da00","mechanism":"9c3ed8911829ed608fa6454f531796ec022da8e02f0e924f5057e14717e20406"},"void":[]}','2a49f656ad676a01e4883b7d078e3720945b746245e162080942d1d01dac1111','afce398747938e62df78981695c2082221b56784721ba47a2392440863d035f5');
INSERT INTO "events" VALUES(1,15,'bids',5,'2026-11-16T21:07:42.466+00:00','{"bids":"2a15a2e4f53ecd5758fc34bb9a65e82367903804a8237ef2668e8c55b459f956"}','afce398747938e62df78981695c2082221b56784721ba47a2392440863d035f5','560fa4a5634eaf73899ad4068581940f965afe005ae89f1f93dd6a8c6d851bd3');
INSERT INTO "events" VALUES(1,16,'awarded',5,'2026-11-16T21:07:42.466+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.8680248618616688,0.11749373070762077,0.08474637322592068,0.10421091879456776,0.8675790270338528],"estimate":0.5777997276595674,"mean":[0.06579545021277651,0.09509028670199969,0.16580540294244692,0.5709070573215369,0.2932116740450837],"stage":"exploit"},"fell_short":false,"menu":"6ea78d79497d02b72442ab9c2d66dd6df0987246d760bc87f1d21967da9a706d","offer":{"budget":9223372036854775807,"limit":5,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,14,14214046],"weights":null}','560fa4a5634eaf73899ad4068581940f965afe005ae89f1f93dd6a8c6d851bd3','b9f913905ad3e43776cfda507f8bd3184f4bc571d151e486cb79051c6ff4ee01');
INSERT INTO "events" VALUES(1,17,'settled',5,'2026-11-16T21:07:42.469+00:00','{"delivered":["client-0","client-5","client-1","client-2","client-3"],"evaluation":{"accuracy":0.23024530622829203,"loss":1.468609989599386},"evidence":{"client-0":{},"client-1":{},"client-2":{},"client-3":{},"client-5":{}},"memories":{"allocator":"6be701578e210fedeb91370e045f9242efb85d614447bfad2158ffc3741d4818","mechanism":"65e1f3bc8c2cc046a352252e3529ee2fb5ee3fd0773571b811d5ad028cc52292"},"void":[]}','b9f913905ad3e43776cfda507f8bd3184f4bc571d151e486cb79051c6ff4ee01','9d9cecfd56004611921df49998f8d11ea6056f52d616cdb1f46a9c7446a5b073');
INSERT INTO "events" VALUES(1,18,'bids',6,'2026-11-16T21:07:42.472+00:00','{"bids":"fada19eed80c3800679ba8ce2543c7fc607ba6e67e4e814349d930e3ae5f9b41"}','9d9cecfd56004611921df49998f8d11ea6056f52d616cdb1f46a9c7446a5b073','58d7612bc5b558c037037a02fdad969e7ba90f74bf8a6c4ed3a37f7bc5cc8e86');
INSERT INTO "events" VALUES(1,19,'awarded',6,'2026-11-16T21:07:42.472+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.8674260182229494,0.12161248802554317,0.09039838966875584,0.1086290795162069,0.10420660642959714],"estimate":0.23592009528633454,"mean":[0.06811489423140499,0.09496581213953788,0.16583413702784316,0.5701633575924064,0.23655290452405123],"stage":"exploit"},"fell_short":false,"menu":"5049ee179bcc788c060e0a25475809f9681d3ae2ebf0394f022e77df314c0687","offer":{"budget":9223372036854775807,"limit":1,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,14,21199841],"weights":null}','58d7612bc5b558c037037a02fdad969e7ba90f74bf8a6c4ed3a37f7bc5cc8e86','b3074cae0d03119bfa1d1fe9cd3157e5bb74a39204902407714c951e3e814d8e');
INSERT INTO "events" VALUES(1,20,'settled',6,'2026-11-16T21:07:42.474+00:00','{"delivered":["client-2"],"evaluation":{"accuracy":0.22284396573158294,"loss":1.5012834576695167},"evidence":{"client-2":{}},"memories":{"allocator":"5212f010a0850679d3defde764e810688db3e52cdf2e853f15ac3b9bf56ae839","mechanism":"024b0e7311489a3af9a7523ae676d4b4fab45258b45b75dd399b2c78bbfc08ac"},"void":[]}','b3074cae0d03119bfa1d1fe9cd3157e5bb74a39204902407714c951e3e814d8e','fcaa33efe3e2e3f9e83feeb31b900555c5b45e16d65621e10595c8d0a37a9cf2');
INSERT INTO "events" VALUES(1,21,'bids',7,'2026-11-16T21:07:42.478+00:00','{"bids":"0899dd3d6325ada199719c241314cb347f56fe58d0051f1986c09342f0517938"}','fcaa33efe3e2e3f9e83feeb31b900555c5b45e16d65621e10595c8d0a37a9cf2','8a370af49f2a1fd47ce207c24bd8639f8b9a92865b384de178e17ba4dd230e6a');
INSERT INTO "events" VALUES(1,22,'awarded',7,'2026-11-16T21:07:42.478+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.10420638759845434,0.1252544202847081,0.09571764833363276,0.11307822796938244,0.10884822982056439],"estimate":0.0,"mean":[0.0008929477597226541,0.09419431546650499,0.16585669226373156,0.5697738070447403,0.23647124359511879],"stage":"exploit"},"fell_short":false,"menu":"da023b1e5587f5e4d5bf828a6d1c8d45f5b0dcf9408c048f7d6a8284943bfd49","offer":{"budget":9223372036854775807,"limit":4,"shortfall":"stop","stopped":false},"privacy":null,"purse":[30000000,14,22129279],"weights":null}','8a370af49f2a1fd47ce207c24bd8639f8b9a92865b384de178e17ba4dd230e6a','9bc8a39d197631860fb8c47a908d27fd0b4971b9b92d8971a0f948f11a9b9648');
INSERT INTO "events" VALUES(1,23,'settled',7,'2026-11-16T21:07:42.480+00:00','{"delivered":["client-2","client-4","client-3","client-1"],"evaluation":{"accuracy":0.19620341159667626,"loss":1.6286033436397858},"evidence":{"client-1":{},"client-2":{},"client-3":{},"client-4":{}},"memories":{"allocator":"03791e7198debeea0532cbd2a82bdd71a9771e356c144dee45f76c2b0f110099","mechanism":"1940e614f165df5cf9dfd16e3e1c97849456818d33a94398a9feef0f59a44819"},"void":[]}','9bc8a39d197631860fb8c47a908d27fd0b4971b9b92d8971a0f948f11a9b9648','4fae363c5153a598356ba6828ba17ba55cd6f0e2eb8081a7d4f76f57307dac5b');
CREATE TABLE memories (
	run INTEGER NOT NULL, 
	part TEXT NOT NULL, 
	round INTEGER NOT NULL, 
	salt TEXT NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (run, part), 
	FOREIGN KEY(run) REFERENCES runs (id)
);
INSERT INTO "memories" VALUES(1,'allocator',7,'682290d2296ae257161f9fec7fb4d45a','{"costs":{"1":[929438,1],"2":[1966066,1],"3":[8046024,2],"4":[9135636,2],"5":[6985795,1]},"estimates":[0.10450541564621196,0.34566258903650277,0.0,0.5777997276595674,0.23592009528633454,0.0,0.6044402817944741]}');
INSERT INTO "memories" VALUES(1,'mechanism',7,'4cc2e3fe84a47b04a5850a372cc56313','{"limit":0.0,"round":7}');
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
INSERT INTO "promises" VALUES(1,1,'client-1',1,983033);
INSERT INTO "promises" VALUES(1,1,'client-4',0,983033);
INSERT INTO "promises" VALUES(1,2,'client-1',1,1415146);
INSERT INTO "promises" VALUES(1,2,'client-3',0,1415146);
INSERT INTO "promises" VALUES(1,2,'client-5',2,1415146);
INSERT INTO "promises" VALUES(1,3,'client-1',0,1266862);
INSERT INTO "promises" VALUES(1,3,'client-2',1,1266862);
INSERT INTO "promises" VALUES(1,3,'client-3',2,1266862);
INSERT INTO "promises" VALUES(1,4,'client-1',0,1050489);
INSERT INTO "promises" VALUES(1,4,'client-2',1,1050489);
INSERT INTO "promises" VALUES(1,4,'client-4',3,1050489);
INSERT INTO "promises" VALUES(1,4,'client-5',2,1050489);
INSERT INTO "promises" VALUES(1,5,'client-0',0,1397159);
INSERT INTO "promises" VALUES(1,5,'client-1',2,1397159);
INSERT INTO "promises" VALUES(1,5,'client-2',3,1397159);
INSERT INTO "promises" VALUES(1,5,'client-3',4,1397159);
INSERT INTO "promises" VALUES(1,5,'client-5',1,1397159);
INSERT INTO "promises" VALUES(1,6,'client-2',0,929438);
INSERT INTO "promises" VALUES(1,7,'client-1',3,1233420);
INSERT INTO "promises" VALUES(1,7,'client-2',0,1233420);
INSERT INTO "promises" VALUES(1,7,'client-3',2,1233420);
INSERT INTO "promises" VALUES(1,7,'client-4',1,1233420);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	max_rounds INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (total > 0), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'dropped',30000000,14);
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
INSERT INTO "settlements" VALUES(1,1,'client-1',983033,NULL);
INSERT INTO "settlements" VALUES(1,1,'client-4',983033,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-1',1415146,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-3',1415146,NULL);
INSERT INTO "settlements" VALUES(1,2,'client-5',1415146,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-1',1266862,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-2',1266862,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-3',1266862,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-1',1050489,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-2',1050489,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-4',1050489,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-5',1050489,NULL);
INSERT INTO "settlements" VALUES(1,5,'client-0',1397159,NULL);
INSERT INTO "settlements" VALUES(1,5,'client-1',1397159,NULL);
INSERT INTO "settlements" VALUES(1,5,'client-2',1397159,NULL);
INSERT INTO "settlements" VALUES(1,5,'client-3',1397159,NULL);
INSERT INTO "settlements" VALUES(1,5,'client-5',1397159,NULL);
INSERT INTO "settlements" VALUES(1,6,'client-2',929438,NULL);
INSERT INTO "settlements" VALUES(1,7,'client-1',1233420,NULL);
INSERT INTO "settlements" VALUES(1,7,'client-2',1233420,NULL);
INSERT INTO "settlements" VALUES(1,7,'client-3',1233420,NULL);
INSERT INTO "settlements" VALUES(1,7,'client-4',1233420,NULL);
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
