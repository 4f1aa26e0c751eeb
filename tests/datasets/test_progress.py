import io
import sys

from bara.datasets._progress import Meter, reporter


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_meter_never_tells_more_than_there_is_nor_the_same_twice():
    told = []
    meter = Meter("file", 100, lambda *news: told.append(news[1:]))
    meter.update(64)
    meter.update(64)
    meter.reset()
    meter.update(100)
    meter.close()
    assert told == [(64, 100), (100, 100)]


def test_on_a_terminal_one_line_is_rewritten(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    show = reporter(progress=True)
    show("file", 1_000_000, 2_000_000)
    show("file", 2_000_000, 2_000_000)
    assert sys.stderr.getvalue() == "\rfile: 1.00 of 2.00 MB\rfile: 2.00 of 2.00 MB\n"


def test_no_progress_says_nothing(capsys):
    reporter(progress=False)("file", 1, 1)
    assert capsys.readouterr() == ("", "")
