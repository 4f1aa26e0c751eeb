"""Comparisons as a paper needs them: any baseline, chosen seeds, names, and how to repeat them."""

import json
import re
from dataclasses import replace

import pytest
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import ConfigError, UnknownNameError
from bara.reports.comparison_table import rows_of
from bara.reports.html import comparison_report

SMALL = {"federation": "synthetic", "budget": {"total": 40, "max_rounds": 4}, "clients": 6}


@pytest.fixture(scope="module")
def found():
    return bara.compare(
        SMALL,
        allocators=["even", "random"],
        mechanisms=["bid-price-first", "fair"],
        seeds=2,
        jobs=1,
    )


def differences(found, against):
    """What each line is measured against, as the table's column of differences shows it."""
    rows = rows_of(bara.Comparison(found.results, bases=found.bases, against=against))
    head, *lines = rows
    return {(line[0], line[1]): bool(line[head.index(f"vs {against}")]) for line in lines}


def test_a_mechanism_is_measured_against_another_under_each_allocator(found):
    assert differences(found, "fair") == {
        ("even", "bid-price-first"): True,
        ("even", "fair"): False,
        ("random", "bid-price-first"): True,
        ("random", "fair"): False,
    }
    assert differences(found, "mechanism=fair") == differences(found, "fair")


def test_a_line_without_the_first_allocator_beside_it_is_measured_against_nothing(found):
    few = [run for run in found.results if (run.allocator, run.mechanism) != ("even", "fair")]
    few += [replace(run, allocator="finale") for run in few if run.mechanism == "fair"]
    head, *lines = rows_of(bara.Comparison(few, bases=found.bases))
    measured = {(line[0], line[1]): bool(line[head.index("vs first")]) for line in lines}
    assert measured == {
        ("even", "bid-price-first"): False,
        ("random", "bid-price-first"): True,
        ("random", "fair"): False,
        ("finale", "fair"): False,
    }


@pytest.mark.parametrize("key", ["training.learning_rate", "training.memory"])
def test_keys_that_a_federation_ignores_are_refused_before_anything_is_run(key, tmp_path):
    grid = {key: [0.1, 0.3] if key.endswith("rate") else ["off", "plain"]}
    with refused(ConfigError, "training", "synthetic"):
        bara.compare(SMALL, allocators=["even"], grid=grid, jobs=1, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_any_allocator_is_a_baseline_and_so_is_a_whole_line(found):
    under = {
        ("even", "bid-price-first"): True,
        ("even", "fair"): True,
        ("random", "bid-price-first"): False,
        ("random", "fair"): False,
    }
    assert differences(found, "random") == under
    one = differences(found, "random, mechanism=fair")
    assert [place for place, measured in one.items() if not measured] == [("random", "fair")]


def test_the_difference_is_that_from_the_named_baseline(found):
    kept = {(r.allocator, r.mechanism, r.seed): r.accuracy_kept for r in found.results}
    gains = [
        kept["random", "bid-price-first", seed] - kept["random", "fair", seed] for seed in (0, 1)
    ]
    head, *rows = rows_of(bara.Comparison(found.results, bases=found.bases, against="fair"))
    (row,) = [row for row in rows if row[:2] == ["random", "bid-price-first"]]
    assert row[head.index("vs fair")].startswith(f"{100 * sum(gains) / 2:+.1f} ")


@pytest.mark.parametrize(
    ("against", "error", "facts"),
    [
        ("fiar", UnknownNameError, ("'fiar'", "'fair'")),
        ("mechanism=turns", UnknownNameError, ("'mechanism=turns'",)),
    ],
)
def test_a_baseline_that_is_not_compared_is_refused_before_anything_runs(
    against, error, facts, tmp_path
):
    with refused(error, *facts):
        bara.compare(SMALL, mechanisms=["fair"], seeds=1, against=against, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_word_for_two_keys_is_refused():
    grid = {"clients.count": [4, 6], "budget.max_rounds": [4, 6]}
    with refused(ConfigError, "count=6", "max_rounds=6"):
        bara.compare(SMALL, allocators=["even"], grid=grid, seeds=1, jobs=1, against="6")


def test_the_command_line_measures_against_what_it_is_told_and_remembers_it(tmp_path):
    words = ["compare", "--allocators", "even,random", "--seeds", "2", "--jobs", "1"]
    words += ["--set", "federation.engine=synthetic", "--set", "budget.max_rounds=4"]
    words += ["--against", "random", "--out", str(tmp_path), "--markdown"]
    done = CliRunner().invoke(app, words)
    assert "| vs random |" in done.stdout
    assert bara.open(tmp_path).against == "random"
    assert "vs random" in (tmp_path / "report.html").read_text()


def test_a_suite_and_several_budgets_have_the_baseline_too():
    shares = bara.compare(
        SMALL,
        allocators=["even", "random"],
        budgets=[0.5, 1],
        seeds=2,
        jobs=1,
        against="random",
    )
    assert shares.frontier.baseline == "random"
    whole = [replace(run, share=None, setting="one") for run in shares.results if run.share == 1]
    suite = bara.Comparison(whole, bases={"one": {}}, against="random")
    assert suite.standings.baseline == "random"


def test_seeds_are_so_many_or_those_that_are_named():
    seeds = [result.seed for result in compared(seeds=2).results]
    assert seeds == [0, 1]
    assert [result.seed for result in compared(seeds=[7, 3]).results] == [3, 7]
    for wrong in ([], [3, 3], [-1], [True], "37", 0):
        with refused(ConfigError, "seeds"):
            compared(seeds=wrong)


@pytest.mark.parametrize(
    ("text", "seeds"), [("2", [0, 1]), ("3,7", [3, 7]), ("7,", [7]), ("7, 3", [3, 7])]
)
def test_the_command_line_takes_a_number_or_a_list_with_a_comma(text, seeds):
    words = ["compare", "--allocators", "even", "--seeds", text, "--jobs", "1", "--json"]
    words += ["--set", "federation.engine=synthetic", "--set", "budget.max_rounds=2"]
    tree = json.loads(CliRunner().invoke(app, words).stdout)
    assert [result["seed"] for result in tree["results"]] == seeds


def test_seeds_that_are_no_numbers_are_refused():
    done = CliRunner().invoke(app, ["compare", "--seeds", "three"])
    assert done.exit_code == 2
    assert "'three'" in done.stderr


def compared(**options):
    return bara.compare(SMALL, allocators=["even"], jobs=1, **options)


def test_a_name_that_was_changed_is_the_name_everywhere(tmp_path):
    common = {"seeds": 1, "jobs": 1, "out": tmp_path}
    bara.compare(SMALL, allocators={"mine": "random"}, mechanisms={"a": "fair"}, **common)
    again = bara.compare(SMALL, allocators={"ours": "random"}, mechanisms={"b": "fair"}, **common)
    assert [(r.allocator, r.mechanism, r.reused) for r in again.results] == [("ours", "b", True)]
    opened = bara.open(tmp_path).results
    assert [(r.allocator, r.mechanism, r.varied) for r in opened] == [
        ("ours", "b", {"mechanism": "b"})
    ]
    assert "mine" not in (tmp_path / "results.csv").read_text()


def test_a_comparison_in_python_leaves_its_report(tmp_path):
    compared(seeds=1, out=tmp_path)
    assert "Repeat it" in (tmp_path / "report.html").read_text()


def test_the_title_of_a_report_names_data_clients_and_budget(found):
    title = re.search("<h1>(.*?)</h1>", comparison_report(found)).group(1)
    assert title.startswith("synthetic, 6 clients, budget 40: ")
    varied = bara.compare(
        SMALL, allocators=["even"], grid={"budget.total": [40, 1200]}, seeds=1, jobs=1
    )
    title = re.search("<h1>(.*?)</h1>", comparison_report(varied)).group(1)
    assert "budget 40 to 1,200:" in title


def test_repeat_it_is_a_program_that_makes_the_same():
    class Three:
        def ask(self, _purse):
            return bara.Offer.recruit(3)

        def tell(self, record):
            pass

    first = bara.compare(
        SMALL,
        allocators={"three": Three, "an even split": "even:carry_over=true"},
        mechanisms=["bid-price-first", "fair"],
        grid={"clients.bids": ["uniform(1, 2)", "constant(1)"]},
        seeds=[3, 7],
        against="fair",
        jobs=1,
    )
    page = comparison_report(first)
    assert "of your own program: Three" in page
    names = {"Three": Three}
    exec(first.script, names)  # noqa: S102 - what it tells the reader to run
    assert names["found"].results == first.results
    assert names["found"].against == "fair"


def test_the_program_tells_objects_of_one_class_apart_by_their_names_in_the_table():
    class Recruits:
        def __init__(self, n):
            self.n = n

        def ask(self, _purse):
            return bara.Offer.recruit(self.n)

        def tell(self, record):
            pass

    parts = {"two": Recruits(2), "3 of them": Recruits(3), "made": lambda: Recruits(4)}
    first = bara.compare(SMALL, allocators=parts, seeds=1, jobs=1)
    names = {"two": parts["two"], "my_3_of_them": parts["3 of them"], "made": parts["made"]}
    assert f"of your own program: {', '.join(sorted(names))}" in first.script
    exec(first.script, names)  # noqa: S102 - what it tells the reader to run
    assert names["found"].results == first.results


@pytest.mark.path
def test_a_comparison_of_a_suite_repeats_it_too():
    made = bara.compare(
        suite="development",
        only=["digits-paper"],
        budget={"max_rounds": 1},
        allocators=["even"],
        seeds=1,
        jobs=1,
    )
    names = {}
    exec(made.script, names)  # noqa: S102 - as above
    assert names["found"].results == made.results


def test_a_command_repeats_what_it_made():
    made = compared(seeds=1, command="bara compare --seeds 1")
    assert made.script == ""
    assert "<pre>bara compare --seeds 1</pre>" in comparison_report(made)


@pytest.mark.parametrize(("currency", "digits"), [("EUR", 2), ("JPY", 0), (None, 2)])
def test_a_report_shows_payments_in_the_digits_of_their_currency(currency, digits, tmp_path):
    budget = {"total": 400, "max_rounds": 3, "currency": currency}
    bara.run(federation="synthetic", budget=budget, clients=6, out=tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    paid = re.findall(r">client-\d</td><td[^>]*>(?:[^<]*asked )?([\d.]+)", page)
    assert paid
    assert {len(amount.partition(".")[2]) for amount in paid} == {digits}
