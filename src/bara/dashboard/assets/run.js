// The page of one run: drawn from its twin in JSON, then kept up to date by the news.

import { Figure } from "./charts.js";
import { ask, command, count, duration, get, h, money, named, number, percent, setCurrency, showState, table } from "./dom.js";
import { belief, choice, menu } from "./round.js";
import { payments } from "./rows.js";

const [, base, asked] = location.pathname.match(/^(\/runs\/.+?)(?:\/rounds\/(\d+))?$/);
const figures = Object.fromEntries(Object.entries({
  accuracy: "Accuracy", loss: "Loss", purse: "Money left", n: "Clients per round", prospects: "What money buys", payments: "Payments by client", menu: "The menu", belief: "What the allocator believes",
}).map(([id, title]) => [id, new Figure(get(id), title)]));

let run = null;
let sheet = null;
let following = asked === undefined;
let lost = false;

const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

const tile = (label, big, small, bar) => h("div", { class: "tile" }, h("dt", {}, label), h("dd", {},
  h("span", { class: "big" }, big), bar && h("progress", { max: 1, value: bar.value, "aria-label": bar.label }), h("span", { class: "small" }, small)));

const KEPT = { final: "the last one", average: "the average of the last ones", best: "the best on validation data" };

function drawTiles() {
  const { glance: g, state } = run;
  const done = state.word === "finished";
  const pace = g.seconds_a_round && !done ? `, about ${duration(g.rounds_left * g.seconds_a_round)} at most` : "";
  const forecast = g.forecast
    ? tile(`Forecast of the final ${run.metric}`, percent(g.forecast.accuracy), `${percent(g.forecast.low)} to ${percent(g.forecast.high)}, nine times in ten; by ${g.forecast.source}`)
    : g.kept ? tile("The model you take home", percent(g.kept.accuracy), `${KEPT[g.kept.model] ?? g.kept.model}; best round ${percent(g.accuracy_best)}`)
    : tile("Best round", percent(g.accuracy_best), done ? "the run has ended: nothing is left to forecast" : "too few rounds for a forecast");
  get("tiles").replaceChildren(
    tile("Budget left", money(g.left), `${money(g.spent)} of ${money(g.budget)} spent`, { value: g.budget ? g.left / g.budget : 0, label: "Part of the budget that is left" }),
    tile("Rounds left", count(g.rounds_left), `${count(g.rounds)} of ${count(g.max_rounds)} played${pace}`, { value: g.rounds_left / g.max_rounds, label: "Part of the rounds that is left" }),
    tile(done ? `Final ${run.metric}` : `${capital(run.metric)} now`, percent(g.accuracy), g.loss === null ? "" : `loss ${number(g.loss)}`),
    forecast,
    ...targetTile(g, state),
    tile("Clients active", `${count(g.active)}${g.clients ? ` of ${count(g.clients)}` : ""}`, "delivered in the last ten rounds"));
}

let needed = null;
function drawNeeds() {
  const { needs } = run.state;
  const told = JSON.stringify(needs);
  if (told === needed) return; // a command that was just selected or copied stays so
  needed = told;
  get("needs").hidden = !needs.length;
  get("needs").replaceChildren(...needs.map(({ text, answer }) => h("li", {}, named(text), answer ? ". " : "", answer && command(answer))));
}

function drawProspects() {
  const o = run.glance.outlook;
  const told = o !== null && run.state.word !== "finished";
  get("outlook").hidden = !told;
  if (!told) return;
  const points = o.spend.map((spend, i) => ({ spend, accuracy: o.accuracy[i], low: o.low[i], high: o.high[i] }));
  const enough = points.find((point) => o.enough !== null && point.spend >= o.enough);
  const caption = `The ${run.metric} that is expected if the run costs so much in all, from stopping now to twice what is left.`;
  const marks = enough ? [{ x: enough.spend, y: enough.accuracy, text: `enough: ${money(o.enough)}`, colour: 0 }] : [];
  figures.prospects.draw({
    x: { label: "spent in all", name: "spent", format: number }, y: { format: (value) => `${number(100 * value)} %` }, marks, caption,
    series: [
      { name: "nine times in ten", kind: "band", colour: 0, xs: o.spend, ys: o.high, lows: o.low },
      { name: "expected accuracy", kind: "line", colour: 0, xs: o.spend, ys: o.accuracy, format: percent },
      ...(o.target ? [{ name: "target", kind: "line", look: "dash thin", colour: "soft", read: false, xs: [o.spend[0], o.spend.at(-1)], ys: [o.target, o.target] }] : [])],
    words: `${caption} ${percent(o.accuracy[0])} for ${money(o.spend[0])}, ${percent(o.accuracy.at(-1))} for ${money(o.spend.at(-1))}.`,
    table: { columns: [{ key: "spend", label: "spent in all", format: money }, { key: "accuracy", label: "expected", format: percent }, { key: "low", label: "low", format: percent }, { key: "high", label: "high", format: percent }], rows: points },
  });
}

function targetTile(g, state) {
  const { target, sure, chance, out_of_reach: lost } = g.outlook ?? {};
  if (!target) return [];
  const how = state.ended ?? (lost ? "looks out of reach" : sure === null ? "" : `${percent(sure)} sure that it is reached; ${percent(chance)} that it can be`);
  return [tile("Target", percent(target), how)];
}

function drawVerdict() {
  const { bought, top_share: top, never_paid: never, oldest, failed, returned } = run.glance;
  const parts = [];
  if (bought) {
    const way = bought.points > 0.5 ? "up" : bought.points < -0.5 ? "down" : "level";
    const signed = `${bought.points < 0 ? "−" : "+"}${Math.abs(bought.points).toFixed(1)} points`;
    parts.push("The last ", h("b", {}, money(bought.money)), ` (${count(bought.rounds)} ${bought.rounds === 1 ? "round" : "rounds"}) bought `, h("b", { class: way }, signed), ` of ${run.metric}${way === "level" ? ": the curve is level" : ""}. `);
  }
  if (top) parts.push(h("b", {}, percent(top.share)), ` of the money went to the ${top.clients === 1 ? "client" : `${count(top.clients)} clients`} that earned most. `);
  if (never.count) parts.push(h("b", {}, count(never.count)), ` ${never.count === 1 ? "client" : "clients"} bid and earned nothing (${never.names}): the model has not heard them. `);
  if (oldest) parts.push("The oldest update in the model is ", h("b", {}, count(oldest)), ` ${oldest === 1 ? "round" : "rounds"} old. `);
  if (failed) parts.push(h("b", {}, count(failed)), ` ${failed === 1 ? "delivery" : "deliveries"} failed, and ${money(returned)} came back.`);
  get("verdict").replaceChildren(...parts);
}

function rows(columns) {
  return columns.round.map((_, i) => Object.fromEntries(Object.keys(columns).map((key) => [key, columns[key][i]])));
}

const ROUND = { key: "round", label: "round", format: count };

function drawCurves() {
  const axis = document.querySelector("input[name=axis]:checked").value;
  const { rounds: r, glance: g } = run;
  const x = axis === "round" ? { label: "round", format: count, min: 0 } : { label: "money spent", name: "spent", format: number, min: 0 };
  const xs = r[axis];
  const columns = [ROUND, { key: "spent", label: "spent", format: money }];
  const thinned = r.round.length < run.of ? `${count(r.round.length)} of ${count(run.of)} rounds are drawn, every peak among them` : "";
  const series = [{ name: run.metric, kind: "line", colour: 0, xs, ys: r.accuracy }];
  const last = r.round.length - 1;
  const marks = last >= 0 ? [{ x: xs[last], y: r.accuracy[last], text: percent(r.accuracy[last]), colour: 0 }] : [];
  if (g.forecast && last >= 0) {
    const end = axis === "round" ? g.max_rounds : g.budget;
    series.push({ name: "nine times in ten", kind: "band", colour: 1, xs: [xs[last], end], ys: [r.accuracy[last], g.forecast.high], lows: [r.accuracy[last], g.forecast.low] },
      { name: "forecast", kind: "line", look: "dash thin", colour: 1, read: false, xs: [xs[last], end], ys: [r.accuracy[last], g.forecast.accuracy] });
  }
  figures.accuracy.rename(capital(run.metric));
  figures.accuracy.draw({
    x, y: { format: (value) => `${number(100 * value)} %`, zero: true }, series, marks, caption: thinned,
    empty: last < 0 && "no round is settled yet",
    words: `From ${percent(r.accuracy[0])} to ${percent(r.accuracy[last])} over ${x.label}.`,
    table: { columns: [...columns, { key: "accuracy", label: run.metric, format: percent }], rows: rows(r) },
  });
  const known = r.loss.some((value) => value !== null);
  get("loss").hidden = !known;
  get("loss").parentElement.classList.toggle("one", !known);
  figures.loss.draw({
    x, y: { zero: true }, series: [{ name: "loss", kind: "line", colour: 3, xs, ys: r.loss }], empty: !known && "this federation reports no loss",
    words: known ? `From ${number(r.loss.find((v) => v !== null))} to ${number(r.loss[last])} over ${x.label}.` : "",
    table: { columns: [...columns, { key: "loss", label: "loss", format: number }], rows: rows(r) },
  });
}

function drawMoney() {
  const { rounds: r, glance: g } = run;
  const x = { label: "round", format: count, min: 0, max: Math.max(g.max_rounds, 1) };
  const series = [
    { name: "left", kind: "line", colour: 0, xs: r.round, ys: r.left, format: money },
    { name: "spent evenly", kind: "line", look: "dash thin", colour: "soft", read: false, xs: [0, g.max_rounds], ys: [g.budget, 0] }];
  if (sheet?.path) series.push({ name: following ? "the plan" : `the plan in round ${count(sheet.round)}`, kind: "line", look: "dash", colour: 1, read: false, xs: sheet.path.round, ys: sheet.path.left });
  figures.purse.draw({
    x, y: { zero: true }, series, words: `${money(g.left)} of ${money(g.budget)} is left after ${count(g.rounds)} of ${count(g.max_rounds)} rounds.`,
    table: { columns: [ROUND, { key: "cost", label: "cost", format: money }, { key: "left", label: "left", format: money }], rows: rows(r) },
  });
  const [, ...xs] = r.round;
  get("n").hidden = !xs.length;
  get("n").parentElement.classList.toggle("one", !xs.length);
  const [n, bad] = [r.n.slice(1), r.void.slice(1)];
  figures.n.draw({
    x: { label: "round", format: count, min: 0 }, y: { zero: true, format: number }, legend: true,
    series: [
      { name: "delivered", kind: "bars", colour: 0, xs, ys: n },
      { name: "void", kind: "bars", colour: "bad", xs, ys: n.map((value, i) => (bad[i] ? value + bad[i] : null)), lows: n, values: bad }],
    empty: !xs.length && "no round is settled yet", words: `Between ${Math.min(...n)} and ${Math.max(...n)} clients per round.`,
    table: { columns: [ROUND, { key: "n", label: "delivered", format: count }, { key: "void", label: "void", format: count }], rows: rows(r).slice(1) },
  });
}

function drawPayments() {
  const { top, others, count: all } = run.clients;
  const clients = others ? [...top, others] : top;
  const open = run.retention === "keep";
  get("payments").hidden = !clients.length;
  const columns = [
    { key: "client", label: "client", name: true }, { key: "won", label: "won", format: count }, { key: "void", label: "void", format: count },
    ...(open ? [{ key: "asked", label: "asked", format: money }, { key: "asked_last", label: "asked last", format: money }] : []), { key: "paid", label: "earned", format: money }, { key: "returned", label: "came back", format: money }];
  figures.payments.draw({
    drawing: payments, clients, legend: true,
    series: [{ name: "earned", kind: "bars", colour: 0 }, { name: "void: promised, came back", kind: "bars", colour: "bad" }, ...(open ? [{ name: "asked, over all rounds won", kind: "line", colour: "ink" }] : [])],
    empty: !clients.length && "nobody has been recruited yet",
    caption: open ? "" : "What clients asked is not shown: this ledger drops bids.",
    words: `${count(all)} clients bid or were recruited; ${top[0]?.client ?? "nobody"} earned most, ${money(top[0]?.paid)}.`,
    table: { columns, rows: clients },
  });
}

function drawContributions() {
  const found = run.contributions;
  get("contributions").hidden = !found;
  if (!found) return;
  const points = (value) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(2)}`;
  get("contributions").querySelector("p").textContent = found.caution;
  get("contributions").querySelector("div").replaceChildren(table([
    { key: "client", label: "client", name: true }, { key: "mean", label: `points of ${run.metric}`, format: points }, { key: "low", label: "low", format: points },
    { key: "high", label: "high", format: points }, { key: "rounds", label: "rounds", format: count }, { key: "paid", label: "earned", format: money }], found.clients, "Contributions by client"));
}

function drawFailures() {
  const { count: all, reasons, newest } = run.failures;
  get("failures").parentElement.hidden = !all;
  if (!all) return get("failures").replaceChildren();
  return get("failures").replaceChildren(h("div", { class: "figures" },
    h("div", { class: "card" }, table([{ key: "reason", label: "why", name: true }, { key: "count", label: "how often", format: count }], reasons, "Failures by reason")),
    h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Newest failures" },
      table([ROUND, { key: "client", label: "client", name: true, left: true }, { key: "reason", label: "why", name: true, left: true }, { key: "returned", label: "came back", format: money }], newest, "Newest failures"))));
}

function drawDecisions() {
  get("decisions").hidden = !run.decisions.length;
  get("decisions").querySelector("ul").replaceChildren(...run.decisions.map(({ at, what, amount, who, why }) => h("li", {},
    h("span", { class: "soft" }, `${at} UTC `), h("b", {}, named(what)), amount === null ? "" : `: ${money(amount)}`, " by ", named(who), why ? ": " : "", named(why))));
}

function drawSheet() {
  const slider = get("round");
  slider.max = Math.max(run.sheet?.round ?? 1, 1);
  slider.disabled = !run.sheet;
  if (following) sheet = run.sheet;
  if (sheet) slider.value = sheet.round;
  get("round-number").textContent = sheet ? count(sheet.round) : "–";
  slider.setAttribute("aria-valuetext", sheet ? `round ${sheet.round}` : "no round yet");
  get("follow").setAttribute("aria-pressed", String(following));
  get("earlier").disabled = !sheet || sheet.round <= 1;
  get("later").disabled = !sheet || sheet.round >= Number(slider.max);
  get("choice").textContent = choice(sheet, run.state.word);
  get("words").querySelector("div").replaceChildren(...(sheet?.words ?? []).map((words) => h("p", {}, named(words))));
  figures.menu.draw(menu(sheet, run.retention));
  const believed = belief(sheet, run.metric);
  get("belief").hidden = Boolean(believed.empty);
  get("belief").parentElement.classList.toggle("one", get("belief").hidden);
  figures.belief.draw(believed);
  const cell = (key, label) => ({ key, label, format: money });
  get("bids").querySelector("div").replaceChildren(sheet ? table(
    [{ key: "client", label: "client", name: true }, ...(run.retention === "keep" ? [cell("asked", "asked")] : []), cell("promised", "promised"), cell("paid", "earned"), { key: "became", label: "what became of it", name: true }],
    sheet.bids, `Round ${sheet.round}`) : "");
}

let [wanted, asking] = [null, false];
async function goTo(number) {
  [wanted, following] = [number, false];
  get("round-number").textContent = count(number);
  if (asking) return; // who drags the slider wants the round where it stops, not those on the way
  asking = true;
  let [asked, found] = [null, null];
  try {
    while (wanted !== null && wanted !== asked) {
      asked = wanted;
      const answer = await fetch(`${base}/rounds/${asked}.json`);
      found = answer.ok ? await answer.json() : null;
    }
  } finally {
    asking = false;
  }
  if (wanted === null || found === null) return;
  sheet = found;
  history.replaceState(null, "", `${base}/rounds/${asked}`);
  drawSheet();
  drawMoney();
}

function follow() {
  [following, wanted] = [true, null];
  history.replaceState(null, "", base);
  drawSheet();
  drawMoney();
}

function drawAll() {
  setCurrency(run.currency);
  document.title = `${run.run} · bara`;
  get("title").replaceChildren(named(run.run));
  get("what").textContent = `${run.allocator} on ${run.mechanism} · ${run.dataset} · seed ${run.seed}`;
  showState(get("state"), run.state, lost);
  drawNeeds();
  drawTiles();
  drawVerdict();
  drawSheet();
  drawCurves();
  drawMoney();
  drawProspects();
  drawPayments();
  drawContributions();
  drawFailures();
  drawDecisions();
  document.body.dataset.closed = run.state.closed;
}

async function load() {
  const [found, problem] = await ask(`${base}.json`);
  if (!found) {
    get("verdict").textContent = problem;
    setTimeout(start, 3000);
    return false;
  }
  [run, lost] = [found, false];
  drawAll();
  return true;
}

function take(news) {
  if (news.reload) return start();
  const rounds = Object.fromEntries(Object.keys(run.rounds).map((key) => [key, [...run.rounds[key], ...news.rounds[key]]]));
  run = { ...news, rounds };
  if (rounds.round.length > 2000) return start(); // the server thins it again
  return drawAll();
}

let source = null;
async function start() {
  source?.close(); // its news go on from another state than the one that is loaded now
  if (!(await load())) return;
  if (asked !== undefined && !following && !sheet) goTo(Number(asked));
  if (run.state.over) return;
  source = new EventSource(`${base}/events?after=${run.state.closed}`);
  source.onmessage = (event) => {
    lost = false;
    take(JSON.parse(event.data));
    if (run.state.over) source.close();
  };
  source.onerror = () => {
    lost = true;
    showState(get("state"), run.state, lost);
    if (source.readyState === EventSource.CLOSED) setTimeout(start, 3000); // it was refused: the browser asks no more
  };
}

get("axis").addEventListener("change", drawCurves);
get("round").addEventListener("input", (event) => goTo(Number(event.target.value)));
get("earlier").addEventListener("click", () => goTo(Number(get("round").value) - 1));
get("later").addEventListener("click", () => goTo(Number(get("round").value) + 1));
get("follow").addEventListener("click", follow);
get("twin").href = `${base}.json`;
for (const name of ["rounds", "clients", "failures", "decisions"]) get(`${name}-csv`).href = `${base}/${name}.csv`;
setInterval(() => run && showState(get("state"), run.state, lost), 1000);
start();
