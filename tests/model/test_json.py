"""Models as JSON: the same bits back, and text that is damaged or hostile."""

import json

import numpy as np
import pytest

import sparserf as srf

from ..fitted_models import FITS


def assert_same_model(again, model):
    """Check that two models are the same to the bit."""
    for mine, other in (
        (again.coef, model.coef),
        (np.asarray(again.intercept), np.asarray(model.intercept)),
    ):
        assert mine.tobytes() == other.tobytes() and mine.shape == other.shape
    assert again.support.tobytes() == model.support.tobytes() and again.info == model.info
    assert srf.features.are_same(again.features, model.stripped.features)
    assert (again.classes is None) == (
        model.classes is None
    ) or again.classes.tolist() == model.classes.tolist()


def read_back(model):
    """Return what JSON gives back, which is the same model to the bit."""
    text = model.to_json()
    again = srf.SparseModel.from_json(text)
    assert_same_model(again, model)
    assert again.to_json() == text and not again.coef.flags.writeable
    return again


@pytest.mark.parametrize("name", FITS)
def test_json_reads_back_to_the_same_bits(models, name):
    read_back(models[name])


@pytest.mark.slow
def test_json_of_a_model_of_a_frame(of_frame):
    model, rows = of_frame
    assert (
        read_back(model).decision_function(rows).tobytes()
        == model.decision_function(rows).tobytes()
    )


def listed(name, **changes):
    """Return a function that changes what the JSON says of an array."""
    return lambda content: content["arrays"][name].update(changes)


HOSTILE = {
    "no arrays": lambda c: c.pop("arrays"),
    "a format from tomorrow": lambda c: c.update(format=c["format"] + 1),
    "an array too many": lambda c: c["arrays"].update(more=c["arrays"]["coef"]),
    "an array that lacks": lambda c: c["arrays"].pop("support"),
    "objects": listed("coef", dtype="|O8"),
    "a dtype that is none": listed("coef", dtype="<f3"),
    "a shape of another size": listed("coef", shape=[10**9]),
    "a negative shape": listed("coef", shape=[-1]),
    "text for numbers": listed("coef", values=["1"]),
    "lists for numbers": listed("coef", values=[[1.0]]),
    "booleans for numbers": listed("support", values=[True]),
    "a number too large": listed("support", values=[2**70], shape=[1]),
    "a number that rounds": listed("objective", values=[2**60 + 1], shape=[1]),
    "text that does not fit": listed("coef", dtype="<U1", values=["ab"], shape=[1]),
    "text wider than the text": listed("coef", dtype="<U900000000", values=["a"], shape=[1]),
    "an input that is not there": lambda c: c.update(n_features_in=1),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", HOSTILE)
def test_json_is_not_trusted(models, name):
    content = json.loads(models["gaussian"].to_json())
    HOSTILE[name](content)
    with pytest.raises(ValueError, match=r"^text "):
        srf.SparseModel.from_json(json.dumps(content))


@pytest.mark.every_case
@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{", '{"format": 1, "arrays": {"a": NaN}}', "[" * 10**5, '{"format": true}'],
)
def test_text_that_is_no_model(text):
    with pytest.raises(ValueError, match="text"):
        srf.SparseModel.from_json(text)
    with pytest.raises(TypeError, match="text must be a string"):
        srf.SparseModel.from_json(text.encode())
