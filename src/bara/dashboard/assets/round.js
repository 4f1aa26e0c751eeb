// One round: what each number of clients would have cost, which was chosen, and what the allocator believed.

import { count, money, number, percent } from "./dom.js";

const some = (n, one) => (n === 1 ? `1 ${one}` : `${count(n)} ${one}s`);
const clients = (n) => some(n, "client");

const UNSETTLED = { running: " It is training now.", waiting: " It waits for an answer." };

/** The choice in one sentence. */
export function choice(sheet, word) {
  if (!sheet) return "No round has been awarded yet.";
  const { plan } = sheet.belief ?? {};
  const bought = sheet.n ? `${clients(sheet.n)} for ${money(sheet.cost)}` : "nobody was recruited";
  const ahead = !plan ? "" : plan.main_rounds >= 1
    ? ` Plan: ${clients(plan.main_n)} a round for ${some(Math.round(plan.main_rounds), "round")}${plan.end_rounds ? `, then ${clients(plan.end_n)} for ${count(plan.end_rounds)}` : ""}; spends ${money(plan.spend)} and ends at ${percent(plan.accuracy)} (${percent(plan.low)} to ${percent(plan.high)}).`
    : ` Plan: ${clients(plan.end_n)} for the last ${plan.end_rounds === 1 ? "round" : some(plan.end_rounds, "round")}; ends at ${percent(plan.accuracy)} (${percent(plan.low)} to ${percent(plan.high)}).`;
  return `Round ${count(sheet.round)}: ${bought}, with ${money(sheet.left)} left before it.${sheet.settled ? "" : UNSETTLED[word] ?? " It is promised, and not settled yet."}${ahead}`;
}

/** The menu's figure: cost against n, the offer's caps, the choice marked. */
export function menu(sheet, retention) {
  if (!sheet) return { empty: "no round has been awarded yet" };
  if (!sheet.menu) return { empty: retention === "drop" ? "not shown: this ledger drops bids and menus" : "this round has no menu" };
  const { n, cost, cap } = sheet.menu;
  if (!n.length) return { empty: "too few clients bid: nobody can be recruited" };
  const capped = cap.some((value) => value !== null);
  const top = 1.6 * Math.max(...cost);
  return {
    x: { label: "clients (n)", name: "n", format: count, min: 0 }, y: { zero: true },
    series: [
      { name: "cost of n", kind: "line", colour: 0, xs: n, ys: cost, format: money },
      ...(capped ? [{ name: "offer: the most it would pay", kind: "step", look: "dash thin", colour: 1, xs: n, ys: cap.map((value) => (value === null ? null : Math.min(value, top))), values: cap, format: money }] : [])],
    marks: sheet.n ? [{ x: sheet.n, y: sheet.cost, text: `${clients(sheet.n)}, ${money(sheet.cost)}` }] : [],
    caption: capped ? "" : "The offer had no cap: it asked for a number of clients.",
    words: sheet.n ? `${clients(sheet.n)} chosen for ${money(sheet.cost)}, of up to ${count(n.at(-1))}.` : "Nobody was chosen.",
    table: { columns: [{ key: "n", label: "n", format: count }, { key: "cost", label: "cost", format: money }, { key: "cap", label: "cap", format: money }], rows: n.map((value, i) => ({ n: value, cost: cost[i], cap: cap[i] })) },
  };
}

/** The belief's figure: for each n the final value of the metric it expects, and how unsure it is. */
export function belief(sheet, metric) {
  const known = sheet?.belief;
  if (!known) return { empty: "this allocator follows a fixed rule and predicts nothing" };
  const { arms, mean, deviation } = known;
  const caption = `Stage: ${known.stage}.`;
  if (!arms.length) return { empty: `nothing about single n yet (${known.stage})` };
  const at = arms.reduce((best, n, i) => (Math.abs(n - sheet.n) < Math.abs(arms[best] - sheet.n) ? i : best), 0);
  const [lows, highs] = [mean.map((value, i) => value - 1.645 * deviation[i]), mean.map((value, i) => value + 1.645 * deviation[i])];
  return {
    x: { label: "clients (n)", name: "n", format: count, min: 0 }, y: { format: (value) => `${number(100 * value)} %` },
    series: [
      { name: "nine times in ten", kind: "band", colour: 2, xs: arms, ys: highs, lows },
      { name: `expected final ${metric}`, kind: "line", colour: 2, xs: arms, ys: mean, format: percent }],
    marks: sheet.n ? [{ x: arms[at], y: mean[at], text: `chosen: ${count(sheet.n)}` }] : [],
    caption, words: `${caption} ${percent(mean[at])} expected for the chosen n, ${sheet.n}.`,
    table: { columns: [{ key: "n", label: "n", format: count }, { key: "mean", label: "expected", format: percent }, { key: "deviation", label: "deviation", format: percent }], rows: arms.map((n, i) => ({ n, mean: mean[i], deviation: deviation[i] })) },
  };
}
