"""A browser for the tests of a module, and pages of the example programs, each made once."""

import pytest

import tenfold as tn
from tests.explain import programs
from tests.explain.browser import Browser


@pytest.fixture(scope="module")
def shared():
    browser = Browser()
    yield browser
    browser.driver.quit()


@pytest.fixture
def browser(shared):
    shared.size()
    shared.colours("light")
    yield shared
    assert shared.complaints == []


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    """Explanations of programs, and their pages, each made once."""
    made = {}

    def explain(function):
        if function not in made:
            explanation = tn.explain(function, programs.inputs_of(function))
            path = tmp_path_factory.mktemp("page") / "page.html"
            explanation.save(path)
            made[function] = explanation, path
        return made[function]

    return explain
