"""The pages of a run whose books are on a server, in a real browser."""

import os

import pytest
from playwright.sync_api import expect

pytestmark = [
    pytest.mark.debian("Chromium", "PostgreSQL"),
    pytest.mark.xdist_group("postgres"),  # tests that stop the server are in it
]


def test_a_database_server_is_read_the_same_way(play, dashboard, browse):
    name = f"dashboard-{os.getpid()}"
    play(name, "budget.max_rounds=6", f"ledger.url={os.environ['BARA_TEST_POSTGRES']}")
    page = browse()
    page.goto(f"{dashboard()}/runs/{name}")
    expect(page.locator("body")).to_have_attribute("data-closed", "6")
