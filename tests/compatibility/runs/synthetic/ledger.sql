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
INSERT INTO "closings" VALUES(1,2,30000000,861235,1032410,1893645);
INSERT INTO "closings" VALUES(1,3,30000000,1893645,1169068,3062713);
INSERT INTO "closings" VALUES(1,4,30000000,3062713,1399434,4462147);
INSERT INTO "closings" VALUES(1,5,30000000,4462147,2524970,6987117);
INSERT INTO "closings" VALUES(1,6,30000000,6987117,929438,7916555);
INSERT INTO "closings" VALUES(1,7,30000000,7916555,1982288,9898843);
INSERT INTO "closings" VALUES(1,8,30000000,9898843,3003183,12902026);
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
INSERT INTO "events" VALUES(1,1,'opened',NULL,'2026-11-16T21:07:38.770+00:00','{"approve_above":null,"config":{"allocator":{"name":"planner"},"budget":{"max_rounds":14,"total":30.0},"clients":{"absence_rate":0.0,"bids":"uniform(0.5, 1.5)","cost_by":"none","count":6,"drift":0.0,"epsilon":null,"failure_rate":0.0,"free_riders":0,"free_riding":"unchanged","label_noise":0.5,"late_rate":0.0,"noisy":0,"partition":"shards(2)","poisoners":0,"strategic":0,"strategy":"overbid(0.2)","valuation":"mixed"},"data":{"evaluation_samples":null,"held_out":"halves","name":"digits","path":null,"train_samples":null,"verify":true},"federation":{"engine":"synthetic","workers":0},"ledger":{"approve_above":null,"client_cap":null,"key":null,"receipt":null,"retention":"keep","url":null},"mechanism":{"name":"bid-price-first"},"seed":0,"training":{"aggregation":"samples","algorithm":"fedsgd","average_last":10,"batch_size":50,"checkpoint_every":1,"evidence":false,"learning_rate":0.1,"local_epochs":1,"model":"mlp","momentum":0.0,"outliers":0.0,"precision":"float32","proximal":0.0,"weight_decay":0.0}},"keyed":false,"retention":"keep"}','0000000000000000000000000000000000000000000000000000000000000000','f5ecbcddd27644b908e02648ccd421af2e90298ba907483f7421ff65cc3b592c');
INSERT INTO "events" VALUES(1,2,'settled',0,'2026-11-16T21:07:38.786+00:00','{"delivered":[],"evaluation":{"accuracy":0.1,"loss":2.3025850929940455},"evidence":{},"void":[]}','f5ecbcddd27644b908e02648ccd421af2e90298ba907483f7421ff65cc3b592c','eb7b254d9a3790d7544837676d4e470859805916ecbb7911bd0622e3c6b62f1c');
INSERT INTO "events" VALUES(1,3,'bids',1,'2026-11-16T21:07:38.790+00:00','{"bids":"8e9d71f007c48c893df11f883696392e48bd4fd2609cc4095efaaaae7b1daf5d"}','eb7b254d9a3790d7544837676d4e470859805916ecbb7911bd0622e3c6b62f1c','9b044f1f314559b3b87c21d4d7832f1ee68ad1e4deaefe59c07ac2f32e73f678');
INSERT INTO "events" VALUES(1,4,'awarded',1,'2026-11-16T21:07:38.790+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: nothing learned yet"},"fell_short":false,"menu":"b1426c05a2b6d81c752743e9ff3374ff7e368fc7cb0afd909ceb11b8ecec7e7c","offer":{"budget":1764705,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,0],"weights":null}','9b044f1f314559b3b87c21d4d7832f1ee68ad1e4deaefe59c07ac2f32e73f678','336a851dbe2fd3597e4f5b04d62fa0e3af14d74fafe4d04576952aecfb156948');
INSERT INTO "events" VALUES(1,5,'settled',1,'2026-11-16T21:07:38.793+00:00','{"delivered":["client-4"],"evaluation":{"accuracy":0.0,"loss":13.815510557964274},"evidence":{"client-4":{}},"void":[]}','336a851dbe2fd3597e4f5b04d62fa0e3af14d74fafe4d04576952aecfb156948','b98861f29015ca3f966b5af652fef39c7f2c5d0623dcadf3f89e9552acd90394');
INSERT INTO "events" VALUES(1,6,'bids',2,'2026-11-16T21:07:38.798+00:00','{"bids":"35757b8be3af277278fae38654a33b32900acde0a7df399adf29de57ef73595c"}','b98861f29015ca3f966b5af652fef39c7f2c5d0623dcadf3f89e9552acd90394','09548765911f1443eb4c34bce9e40ab5491b1b6509a815612963bdb1620f79bc');
INSERT INTO "events" VALUES(1,7,'awarded',2,'2026-11-16T21:07:38.798+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: too few rounds to plan on"},"fell_short":false,"menu":"b9089b95c05b3354f7bfc39959cfd1ddd2910fece817f3b7a304a1053be78d54","offer":{"budget":1821172,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,861235],"weights":null}','09548765911f1443eb4c34bce9e40ab5491b1b6509a815612963bdb1620f79bc','023afad03103f1aa4f691cda36ae0646f6e720c6d4e36090ffb3148e0536417b');
INSERT INTO "events" VALUES(1,8,'settled',2,'2026-11-16T21:07:38.800+00:00','{"delivered":["client-3"],"evaluation":{"accuracy":0.011755090853243775,"loss":4.443468868117907},"evidence":{"client-3":{}},"void":[]}','023afad03103f1aa4f691cda36ae0646f6e720c6d4e36090ffb3148e0536417b','a1e71312cf7cb0d7fcc893af4ab4705d25a4591b43caa481b20228b3a6d772d2');
INSERT INTO "events" VALUES(1,9,'bids',3,'2026-11-16T21:07:38.803+00:00','{"bids":"84420b92d6b266bfe4a77993ac760ff9eb9dc95fbd3cdd7db13c70727c9ab5b7"}','a1e71312cf7cb0d7fcc893af4ab4705d25a4591b43caa481b20228b3a6d772d2','3b4c5359daf45ecc21e868580250921756e0e2dc79d1d3443a68570704808db9');
INSERT INTO "events" VALUES(1,10,'awarded',3,'2026-11-16T21:07:38.803+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: too few rounds to plan on"},"fell_short":false,"menu":"1b534ed61ccf50e83afd78930c84314cce49dd488540baf3ed62d6065754a064","offer":{"budget":1873757,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,1893645],"weights":null}','3b4c5359daf45ecc21e868580250921756e0e2dc79d1d3443a68570704808db9','2ff9ecad32cbc39c9764e5d58eabd68c624532093cda3cedf9126f28440c4bba');
INSERT INTO "events" VALUES(1,11,'settled',3,'2026-11-16T21:07:38.805+00:00','{"delivered":["client-1"],"evaluation":{"accuracy":0.0,"loss":13.815510557964274},"evidence":{"client-1":{}},"void":[]}','2ff9ecad32cbc39c9764e5d58eabd68c624532093cda3cedf9126f28440c4bba','8e6395f5d4246279a87e2cf7710faa2ca6ac333e66b024111cc2eb837ebcdd9d');
INSERT INTO "events" VALUES(1,12,'bids',4,'2026-11-16T21:07:38.808+00:00','{"bids":"217379b3da114e47ff944dbd68ee6d95ad88542a15eeae89f58f4e51aeec641d"}','8e6395f5d4246279a87e2cf7710faa2ca6ac333e66b024111cc2eb837ebcdd9d','08d8b959fdc01ef304a6c28a5722a26f1f1b5b1674fb1633081c813e6b05bb5f');
INSERT INTO "events" VALUES(1,13,'awarded',4,'2026-11-16T21:07:38.808+00:00','{"belief":{"arms":[],"deviation":[],"mean":[],"stage":"even with a finale: too few rounds to plan on"},"fell_short":false,"menu":"c0735667628e5ac98dcee681cb5d9ec4764b0b4818e72e9269cb51fd33bf2826","offer":{"budget":1924091,"limit":9223372036854775807,"shortfall":"shrink","stopped":false},"privacy":null,"purse":[30000000,14,3062713],"weights":null}','08d8b959fdc01ef304a6c28a5722a26f1f1b5b1674fb1633081c813e6b05bb5f','dead3313f897bcbe918b71fcb4a31d85c11f3317465969e6010c8476b9e124c1');
INSERT INTO "events" VALUES(1,14,'settled',4,'2026-11-16T21:07:38.816+00:00','{"delivered":["client-1","client-2"],"evaluation":{"accuracy":0.045600333427873,"loss":3.0878402504737705},"evidence":{"client-1":{},"client-2":{}},"void":[]}','dead3313f897bcbe918b71fcb4a31d85c11f3317465969e6010c8476b9e124c1','236d07a749c5288a000170906a5db602719a1fb6a4d4b8ee6f333c13f06fd26a');
INSERT INTO "events" VALUES(1,15,'bids',5,'2026-11-16T21:07:38.819+00:00','{"bids":"7ee5b1b25547cd1e36fce88770cea77831b424c2bdd14dc889768b01c6e2ad96"}','236d07a749c5288a000170906a5db602719a1fb6a4d4b8ee6f333c13f06fd26a','f8ca7304e97be8c865f1050c0c0de2e125fe0b77e47b1c8b541caf8150082a61');
INSERT INTO "events" VALUES(1,16,'awarded',5,'2026-11-16T21:07:38.819+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.0911183257958438,0.09640163696748368,0.08577162435688322,0.07592139630977908,0.08020765346909359],"mean":[0.09648897230892546,0.1019576784710724,0.09291691661643581,0.08348896764414519,0.08686667177892336],"plan":{"accuracy":0.020317601708469153,"end_n":1,"end_rounds":10,"high":0.35659838249370707,"low":0.0,"main_n":1,"main_rounds":0.0,"spend":9107619},"stage":"plan"},"fell_short":false,"menu":"65f342062bb4f0f11904f6b30b707f632cb57fd0ab2751ae2fa499a7ffae0383","offer":{"budget":9223372036854775807,"limit":5,"shortfall":"shrink","stopped":false,"table":[2553785,2553785,2553785,2553785,2553785]},"privacy":null,"purse":[30000000,14,4462147],"weights":null}','f8ca7304e97be8c865f1050c0c0de2e125fe0b77e47b1c8b541caf8150082a61','b4ca24776eaf7ddf6da2da2553cbc4f8a5d822e7a54edd516044db94c8b6d722');
INSERT INTO "events" VALUES(1,17,'settled',5,'2026-11-16T21:07:38.825+00:00','{"delivered":["client-0","client-5"],"evaluation":{"accuracy":0.1213547761782052,"loss":2.109036988884388},"evidence":{"client-0":{},"client-5":{}},"void":[]}','b4ca24776eaf7ddf6da2da2553cbc4f8a5d822e7a54edd516044db94c8b6d722','5a78e4db6202a852ae3bc8d04aa7e3374ed5d39a952a02e5457c2d9ab539c3e5');
INSERT INTO "events" VALUES(1,18,'bids',6,'2026-11-16T21:07:38.827+00:00','{"bids":"d8f347bcef480f8afc601c4e3acb146f3ab2317e0216f16e4b82d76952452b0b"}','5a78e4db6202a852ae3bc8d04aa7e3374ed5d39a952a02e5457c2d9ab539c3e5','488c14052b2a0cb79c80224043303834ddae54ef97ae91361e69b36a08c97b57');
INSERT INTO "events" VALUES(1,19,'awarded',6,'2026-11-16T21:07:38.827+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.11163843476194377,0.11348124150095361,0.10283470800884704,0.09969031912199146,0.09427149479776063],"mean":[0.16214508640178418,0.16271886988369086,0.15020753167428536,0.14578385122084073,0.13831131864662102],"plan":{"accuracy":0.16214508640178418,"end_n":5,"end_rounds":2,"high":0.4398409479227665,"low":0.0,"main_n":1,"main_rounds":7.0,"spend":23012883},"stage":"plan"},"fell_short":false,"menu":"aefd103aa074fe4416beb237f0284705cbdec37c23bef0bb364bdfbe1a0581c8","offer":{"budget":9223372036854775807,"limit":5,"shortfall":"shrink","stopped":false,"table":[1365632,1707040,1707040,1707040,1707040]},"privacy":null,"purse":[30000000,14,6987117],"weights":null}','488c14052b2a0cb79c80224043303834ddae54ef97ae91361e69b36a08c97b57','7bba92d8a1798de9977f99c9663bc906749b4c5627ec94bdfff3f95c52708439');
INSERT INTO "events" VALUES(1,20,'settled',6,'2026-11-16T21:07:38.832+00:00','{"delivered":["client-2"],"evaluation":{"accuracy":0.09729279944014183,"loss":2.3300302962270263},"evidence":{"client-2":{}},"void":[]}','7bba92d8a1798de9977f99c9663bc906749b4c5627ec94bdfff3f95c52708439','6a61aa7a6166d01876ad8a552b0a70302ade56114de72e1e01c033bee62c913d');
INSERT INTO "events" VALUES(1,21,'bids',7,'2026-11-16T21:07:38.835+00:00','{"bids":"e3aed6576a400551589337a8468bf66f1d0195b5bf07fe82f643d8690b0479c7"}','6a61aa7a6166d01876ad8a552b0a70302ade56114de72e1e01c033bee62c913d','2632f97afe980505c60f1860f171cfe69a723e4be90c13a8575e64faf6f46e54');
INSERT INTO "events" VALUES(1,22,'awarded',7,'2026-11-16T21:07:38.835+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.12414482071321677,0.12531220314617242,0.1101953021792271,0.10377035681057813,0.0941782103009797],"mean":[0.1915898768147727,0.19379966018811393,0.1788881071368136,0.17117882682026128,0.15852085478814362],"plan":{"accuracy":0.15523555036295014,"end_n":1,"end_rounds":0,"high":0.37873811300821913,"low":0.0,"main_n":2,"main_rounds":8.0,"spend":22083445},"stage":"plan"},"fell_short":false,"menu":"c8ab08c1b8784438c389d43fabb55c835e1c07de49d70f14a79d35f47154285c","offer":{"budget":9223372036854775807,"limit":5,"shortfall":"shrink","stopped":false,"table":[0,2760430,3417477,3450538,3450538]},"privacy":null,"purse":[30000000,14,7916555],"weights":null}','2632f97afe980505c60f1860f171cfe69a723e4be90c13a8575e64faf6f46e54','a2e894226f28258d38bebcc3c30220e776dcc2b8ac346de18208f8730c974d36');
INSERT INTO "events" VALUES(1,23,'settled',7,'2026-11-16T21:07:38.839+00:00','{"delivered":["client-2","client-4"],"evaluation":{"accuracy":0.10134087207919319,"loss":2.2892654734928803},"evidence":{"client-2":{},"client-4":{}},"void":[]}','a2e894226f28258d38bebcc3c30220e776dcc2b8ac346de18208f8730c974d36','c0cc262c70a4073bf722a58a9f295ce76e3cd9427e3f91658ebdc142b89760c5');
INSERT INTO "events" VALUES(1,24,'bids',8,'2026-11-16T21:07:38.842+00:00','{"bids":"a5388eab01155cb785f66555066f86824b265750d967e95447140a3504bf72d0"}','c0cc262c70a4073bf722a58a9f295ce76e3cd9427e3f91658ebdc142b89760c5','69b841a0aa56b13dc9c435571430de428227a7a1a390f065d0bbaa669317bcd0');
INSERT INTO "events" VALUES(1,25,'awarded',8,'2026-11-16T21:07:38.842+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.17061484526040022,0.17368471539894223,0.1546716834534154,0.15038147214429762,0.1388551863052535],"mean":[0.21798427176633947,0.2209359815744835,0.20267689895493005,0.20484381031638024,0.1939696854650552],"plan":{"accuracy":0.1856144724109988,"end_n":1,"end_rounds":0,"high":0.6181533973985055,"low":0.0,"main_n":3,"main_rounds":7.0,"spend":20101157},"stage":"plan"},"fell_short":false,"menu":"dca91137c0806d610214709746cbc75cb5c1c4f4612664fc515d6b3b08aa73ba","offer":{"budget":9223372036854775807,"limit":5,"shortfall":"shrink","stopped":false,"table":[0,2871593,3442455,3589492,3589492]},"privacy":null,"purse":[30000000,14,9898843],"weights":null}','69b841a0aa56b13dc9c435571430de428227a7a1a390f065d0bbaa669317bcd0','ff007ab584781d5ef018ad63c87678a4260397def9fd99de4fd4ab14014a7d2a');
INSERT INTO "events" VALUES(1,26,'settled',8,'2026-11-16T21:07:38.847+00:00','{"delivered":["client-5","client-2","client-4"],"evaluation":{"accuracy":0.15720363464245965,"loss":1.8502132781190808},"evidence":{"client-2":{},"client-4":{},"client-5":{}},"void":[]}','ff007ab584781d5ef018ad63c87678a4260397def9fd99de4fd4ab14014a7d2a','a6c22d8a2c010fc8d5b67091ec7f1464cfd0297d0f1a6ef44b70b0dce45aa93a');
INSERT INTO "events" VALUES(1,27,'bids',9,'2026-11-16T21:07:38.850+00:00','{"bids":"849eda6f519ade71f394db75a2b252f42469e25542812acee880d4113d320d08"}','a6c22d8a2c010fc8d5b67091ec7f1464cfd0297d0f1a6ef44b70b0dce45aa93a','de31a4a2e986ca28fd869bec374f2e1b9e3d6eb60c65552c8df4030ef66d0a03');
INSERT INTO "events" VALUES(1,28,'awarded',9,'2026-11-16T21:07:38.850+00:00','{"belief":{"arms":[1,2,3,4,5],"deviation":[0.15874253221491214,0.16169194782585192,0.15468249819765234,0.15175886335140773,0.13223598318146887],"mean":[0.268096624273145,0.27930256559385636,0.26625371525709124,0.25756188800299057,0.23084505530145208],"plan":{"accuracy":0.24347527428969615,"end_n":1,"end_rounds":0,"high":0.5812551295100511,"low":0.0,"main_n":3,"main_rounds":6.0,"spend":17097974},"stage":"plan"},"fell_short":false,"menu":"6739c47b7da195138425d06d1edb4ace02fd76b0a8bed4a2dd1466e20b26b239","offer":{"budget":9223372036854775807,"limit":5,"shortfall":"shrink","stopped":false,"table":[0,2849662,3343717,3562077,3562077]},"privacy":null,"purse":[30000000,14,12902026],"weights":null}','de31a4a2e986ca28fd869bec374f2e1b9e3d6eb60c65552c8df4030ef66d0a03','d21c6fe1edd2418d2294528123bcf32d7e86271cd099b760c620f2c0da6e8387');
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
INSERT INTO "promises" VALUES(1,4,'client-1',0,699717);
INSERT INTO "promises" VALUES(1,4,'client-2',1,699717);
INSERT INTO "promises" VALUES(1,5,'client-0',0,1262485);
INSERT INTO "promises" VALUES(1,5,'client-5',1,1262485);
INSERT INTO "promises" VALUES(1,6,'client-2',0,929438);
INSERT INTO "promises" VALUES(1,7,'client-2',0,991144);
INSERT INTO "promises" VALUES(1,7,'client-4',1,991144);
INSERT INTO "promises" VALUES(1,8,'client-2',1,1001061);
INSERT INTO "promises" VALUES(1,8,'client-4',2,1001061);
INSERT INTO "promises" VALUES(1,8,'client-5',0,1001061);
INSERT INTO "promises" VALUES(1,9,'client-0',1,823550);
INSERT INTO "promises" VALUES(1,9,'client-1',2,823550);
INSERT INTO "promises" VALUES(1,9,'client-3',3,823550);
INSERT INTO "promises" VALUES(1,9,'client-5',0,823550);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	max_rounds INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (total > 0), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'synthetic',30000000,14);
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
INSERT INTO "sealed" VALUES(1,1,'bids','256368375598a7320d6eb57cd8f80b02','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[1252816,861235,1064301,983033,683574,1038760]}');
INSERT INTO "sealed" VALUES(1,1,'menu','19082dabcd9ffcfca35c0664d0930da5','[861235,1966066,3116280,4257204,6264080]');
INSERT INTO "sealed" VALUES(1,2,'bids','0b27be25a4a05489f97f4eb4339ef8f1','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[1445716,1032410,1457920,801678,1415146,1223930]}');
INSERT INTO "sealed" VALUES(1,2,'menu','8592870a4a3c95b333fe96627df593d3','[1032410,2447860,4245438,5782864,7289600]');
INSERT INTO "sealed" VALUES(1,3,'bids','8412a889ff06fff424954ead5c0e9117','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[1266862,602049,1169068,1244740,1450549,1331999]}');
INSERT INTO "sealed" VALUES(1,3,'menu','bd1fc9e4bf526e115f464cbad856606e','[1169068,2489480,3800586,5327996,7252745]');
INSERT INTO "sealed" VALUES(1,4,'bids','5b99d1c09915a55256fc0d492b313946','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[1050489,563455,668590,1168522,974390,699717]}');
INSERT INTO "sealed" VALUES(1,4,'menu','02be2eb6f4f765cb4132068c2bfcb1ea','[668590,1399434,2923170,4201956,5842610]');
INSERT INTO "sealed" VALUES(1,5,'bids','68f0b8284909ea6db92fc2d043d4e79f','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[564970,1262485,1282923,1317413,1397159,637936]}');
INSERT INTO "sealed" VALUES(1,5,'menu','08827a8eb026c31806946a1d0fc74ca7','[637936,2524970,3848769,5269652,6985795]');
INSERT INTO "sealed" VALUES(1,6,'bids','cf4cd906ec7dee2601cddcb0a0b5966c','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[1120212,972282,819348,1309306,1208273,929438]}');
INSERT INTO "sealed" VALUES(1,6,'menu','d2369b9f50d4386798df09a16f7963bc','[929438,1944564,3360636,4833092,6546530]');
INSERT INTO "sealed" VALUES(1,7,'bids','5f90e3f78a82237151b3b0d3d26c474e','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[1233420,1167715,621750,991144,688921,1365482]}');
INSERT INTO "sealed" VALUES(1,7,'menu','d8b182767717f2a14456368ffe726efe','[688921,1982288,3503145,4933680,6827410]');
INSERT INTO "sealed" VALUES(1,8,'bids','4ff903594d267a59d47aadaf7991a892','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[1426406,1001061,858788,1020175,986405,569836]}');
INSERT INTO "sealed" VALUES(1,8,'menu','efb5699a15fd05396b00ad2c712930e1','[858788,1972810,3003183,4080700,7132030]');
INSERT INTO "sealed" VALUES(1,9,'bids','ea501eeb8a369b9630e52be20cab5e13','{"clients":["client-0","client-1","client-2","client-3","client-4","client-5"],"columns":{},"prices":[637572,638143,823550,640874,1248790,518643]}');
INSERT INTO "sealed" VALUES(1,9,'menu','29ee3072083c9e6d6394419f56ea9bfa','[637572,1276286,1922622,3294200,6243950]');
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
INSERT INTO "settlements" VALUES(1,2,'client-3',1032410,NULL);
INSERT INTO "settlements" VALUES(1,3,'client-1',1169068,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-1',699717,NULL);
INSERT INTO "settlements" VALUES(1,4,'client-2',699717,NULL);
INSERT INTO "settlements" VALUES(1,5,'client-0',1262485,NULL);
INSERT INTO "settlements" VALUES(1,5,'client-5',1262485,NULL);
INSERT INTO "settlements" VALUES(1,6,'client-2',929438,NULL);
INSERT INTO "settlements" VALUES(1,7,'client-2',991144,NULL);
INSERT INTO "settlements" VALUES(1,7,'client-4',991144,NULL);
INSERT INTO "settlements" VALUES(1,8,'client-2',1001061,NULL);
INSERT INTO "settlements" VALUES(1,8,'client-4',1001061,NULL);
INSERT INTO "settlements" VALUES(1,8,'client-5',1001061,NULL);
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
