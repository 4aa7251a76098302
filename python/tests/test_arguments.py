"""Values as words of the command line."""

import datetime
import pathlib
import sys

import pytest

from afar._arguments import toml, words
from afar._flags import FLAGS


def test_values_have_the_spelling_of_the_command_line():
    given = {
        "local": 0.25,
        "rtt": "5us",
        "one_way": datetime.timedelta(microseconds=2),
        "in_flight": 8,
        "no_calibrate": True,
        "allow_unmanaged": False,
        "profile": pathlib.Path("a b.csv"),
        "seed": None,
    }
    assert words("run", given) == [
        "--local=25%",
        "--rtt=5us",
        "--one-way=2us",
        "--in-flight=8",
        "--no-calibrate",
        "--profile=a b.csv",
    ]


def test_a_negative_value_stays_one_word():
    assert words("run", {"rtt": "-5us"}) == ["--rtt=-5us"]


def test_lists_are_joined_but_for_flags_that_may_be_given_several_times():
    assert words("predict", {"local": ["10%", 0.2]}) == ["--local=10%,20%"]
    assert words("serve", {"nvme": ["a:1", "b:2"]}) == ["--nvme=a:1", "--nvme=b:2"]
    limits = {"connections": 8, "queues": 4}
    assert words("serve", {"limit": limits}) == ["--limit=connections=8,queues=4"]
    settings = {"price.port": 0, "server.step": "1GiB"}
    assert words("plan pool", {"set": settings}) == ["--set=price.port=0", "--set=server.step=1GiB"]


def test_an_unknown_flag_names_its_neighbour():
    with pytest.raises(TypeError, match="afar run has no flag bandwith; near it: bandwidth"):
        words("run", {"bandwith": "1Gbps"})


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"rtt": 5}, "needs a unit"),
        ({"rtt": object()}, "is no text"),
        ({"no_calibrate": "yes"}, "takes True or False"),
    ],
)
def test_a_value_without_a_spelling_is_refused(flags, said):
    with pytest.raises(TypeError, match=said):
        words("run", flags)


def test_no_flag_has_the_name_of_an_option_of_calls():
    options = {"check", "verbose", "cwd", "env", "time_limit", "capture", "progress"}
    assert {
        name: options & set(flags) for name, flags in FLAGS.items() if options & set(flags)
    } == {}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
def test_toml_is_read_as_it_was():
    import tomllib

    document = {
        "repetitions": 5,
        "on": True,
        "a key": 'quotes " and \\ and \x7f and µ and\nlines',
        "matrix": {"local": ["25%", 0.5], "empty": []},
        "nested": {"in": {"deeper": 1.5}, "of": [{"name": "x", "parts": [{"time": 1}]}, {}]},
        "pairs": [[1, 2], [{"a": 1}, 2]],
    }
    assert tomllib.loads(toml(document)) == document
