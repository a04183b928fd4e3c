"""A ModuleTracker names the modules that are running."""

import tenfold as tn
from tenfold.utils.module_tracker import ModuleTracker


def test_it_names_the_modules_that_are_running():
    class Inner(tn.nn.Module):
        def forward(self, x):
            running.append(set(tracker.parents))
            return x

    running = []
    model = tn.nn.Sequential(Inner(), tn.nn.Sequential(Inner()))
    with ModuleTracker() as tracker:
        model(tn.ones(1))
    top = {"Global", "Sequential"}
    assert running == [top | {"Sequential.0"}, top | {"Sequential.1", "Sequential.1.0"}]
    assert tracker.parents == {"Global"}
    model(tn.ones(1))
    assert len(running) == 4 and tracker.parents == {"Global"}
