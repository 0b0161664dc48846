import enum
import math
import pathlib
from decimal import Decimal

import duck
import numpy as np
import pytest

from tbwriter._summary import check_hparams, decode, event, experiment, trial_end, trial_start


class Optimizer(enum.Enum):
    ADAM = 1


class Level(str, enum.Enum):
    HIGH = "high"


class Size(enum.IntEnum):
    BIG = 7


def activation():
    pass


def stored(value):
    """Return a hyper-parameter as it comes back from what is stored."""
    summary = trial_start(check_hparams({"h": value}), 1.5)
    (read,) = decode(event(summary.values(True), 0, 1.0), {}).values
    assert read.plugin == "hparams"
    assert read.data["start_time_secs"] == 1.5
    return read.data["hparams"].get("h", "left out")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (3, 3.0),
        (0.5, 0.5),
        (True, True),
        (np.bool_(False), False),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3.0),
        (np.array(0.25), 0.25),
        (np.array([0.25]), 0.25),
        (2**70, float(2**70)),
        (Decimal("0.5"), 0.5),
        (duck.Asnumpy(np.array(0.5)), 0.5),
        (Size.BIG, 7.0),
        ("adam", "adam"),
        ("", ""),
        ("é\ud800", "é?"),
        (Level.HIGH, "high"),
        (Optimizer.ADAM, "Optimizer.ADAM"),
        ([1, 2], "[1, 2]"),
        ((1, 2), "(1, 2)"),
        ({"a": 1}, "{'a': 1}"),
        (pathlib.PurePosixPath("/x"), "/x"),
        (activation, "activation"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (np.zeros(3), "ndarray of shape (3,) and dtype float64"),
        (1 + 2j, "(1+2j)"),
        # What comes out of arrays of choices, and the types that stand among hyper-parameters.
        (np.array(["adam", "sgd"])[0], "adam"),
        (np.array("adam"), "adam"),
        (np.array([b"adam"])[0], "adam"),
        (np.array([True])[0], True),
        (np.array(True), True),
        (duck.Asnumpy(np.array(True)), True),
        (np.datetime64("2024-01-02"), "2024-01-02"),
        (np.timedelta64(3, "s"), "3 seconds"),
        (np.complex64(1 + 2j), "(1+2j)"),
        (np.float32, "float32"),
        (np.dtype("float32"), "float32"),
        (int, "int"),
        ([np.float32(0.1), np.int64(2), np.bool_(True), np.str_("a"), None], "[0.1, 2, True, 'a', None]"),
        ({"a": (np.float64(0.1), [duck.Asnumpy(0.5)])}, "{'a': (0.1, [0.5])}"),
        ([duck.Scalar(0.5), duck.Bfloat16([0.5])], "[0.5, 'Bfloat16 of shape (1,) and dtype BFloat16']"),
        (None, "left out"),
    ],
)
def test_a_value_is_a_bool_a_number_or_text(value, wanted):
    got = stored(value)
    assert got == wanted
    assert type(got) is type(wanted)


def test_a_list_that_holds_itself_is_text():
    layers = [1]
    layers.append(layers)
    assert stored(layers) == "[1, [...]]"


@pytest.mark.parametrize("hparams", [None, [("lr", 1)], "lr"])
def test_what_is_no_mapping_is_refused(hparams):
    with pytest.raises(TypeError, match=r"^hparam_dict must be a mapping of name to value, got "):
        check_hparams(hparams)


@pytest.mark.parametrize("name", [3, None])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(TypeError, match=r"^a name in hparam_dict must be a str, got "):
        check_hparams({name: 1})


def test_every_value_repeats_the_metadata_since_it_holds_nothing_else():
    summary = trial_start({"lr": 0.1}, 1.5)
    assert summary.values(False) == summary.values(True)


def test_the_end_says_how_and_when():
    (read,) = decode(event(trial_end(failed=True, end_time=2.5).values(True), 0, 1.0), {}).values
    assert read.data == {"status": "STATUS_FAILURE", "end_time_secs": 2.5}


def test_an_experiment_names_its_columns():
    summary = experiment({"lr": 0.1, "opt": "adam"}, ["loss"], {"lr": [0.1, np.float32(0.5)]})
    (read,) = decode(event(summary.values(True), 0, 1.0), {}).values
    assert read.data == {"hparams": ["lr", "opt"], "metrics": ["loss"]}


@pytest.mark.parametrize("domain", [[], "adam", [1, "adam"], ["adam"], [True]])
def test_a_domain_of_other_values_is_refused(domain):
    with pytest.raises(ValueError, match=r"^hparam_domain_discrete\['lr'\] must be a list of values like .*, got "):
        experiment({"lr": 0.1}, [], {"lr": domain})


def test_a_domain_of_nothing_known_is_refused():
    with pytest.raises(ValueError, match=r"^hparam_domain_discrete names list \['opt'\], which hparam_dict lacks$"):
        experiment({"lr": 0.1}, [], {"opt": ["adam"]})
