"""Networks, losses and optimizers of the prelude, held against PyTorch's; and the programs that Purple
was planned for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.purple.errors import PurpleError
from tenfold.purple.interpret import Session
from tenfold.purple.values import Record

DATA = """(manual-seed 3)
(define x (tensor-randn 6 4))
(define y (tensor '(0 1 2 0 1 2)))
(define model (sequential (linear 4 5) (tanh) (linear 5 3)))
(define (step optimizer)
  (zero-grad optimizer)
  (let ((loss (cross-entropy (forward model x) y)))
    (backward loss)
    (optimizer-step optimizer)
    loss))"""

OPTIMIZERS = {
    "(sgd model :lr 0.1)": lambda p: torch.optim.SGD(p, 0.1),
    "(sgd model :lr 0.1 :momentum 0.9 :weight-decay 0.01)": lambda p: torch.optim.SGD(
        p, 0.1, momentum=0.9, weight_decay=0.01
    ),
    "(adam model :lr 0.05 :weight-decay 0.1)": lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.1),
    "(adamw model :lr 0.05)": lambda p: torch.optim.AdamW(p, 0.05),
    "(sgd model :lr 0.1 :momentum 0.9 :nesterov #t)": lambda p: torch.optim.SGD(
        p, 0.1, momentum=0.9, nesterov=True
    ),
    "(sgd model :lr 0.1 :momentum 0.9 :dampening 0.5)": lambda p: torch.optim.SGD(
        p, 0.1, momentum=0.9, dampening=0.5
    ),
    "(rmsprop model :weight-decay 0.1)": lambda p: torch.optim.RMSprop(p, weight_decay=0.1),
    "(rmsprop model :momentum 0.9 :centered #t)": lambda p: torch.optim.RMSprop(
        p, momentum=0.9, centered=True
    ),
    "(adagrad model :lr 0.1 :lr-decay 0.1)": lambda p: torch.optim.Adagrad(p, 0.1, lr_decay=0.1),
    "(adadelta model :lr 0.5)": lambda p: torch.optim.Adadelta(p, 0.5),
    "(adamax model :lr 0.02)": lambda p: torch.optim.Adamax(p, 0.02),
    "(nadam model :lr 0.02)": lambda p: torch.optim.NAdam(p, 0.02),
    "(radam model :lr 0.1)": lambda p: torch.optim.RAdam(p, 0.1),
    "(rprop model)": lambda p: torch.optim.Rprop(p),
    "(asgd model :lr 0.1 :lambd 0.1 :t0 1 :weight-decay 0.1)": lambda p: torch.optim.ASGD(
        p, 0.1, lambd=0.1, t0=1, weight_decay=0.1
    ),
    "(adafactor model :lr 0.1 :weight-decay 0.1)": lambda p: torch.optim.Adafactor(p, 0.1, weight_decay=0.1),
}
SCHEDULES = {
    "(step-lr o 2)": lambda o: torch.optim.lr_scheduler.StepLR(o, 2),
    "(multi-step-lr o '(2 4) :gamma 0.5)": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 4], 0.5),
    "(exponential-lr o 0.9)": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
    "(constant-lr o)": lambda o: torch.optim.lr_scheduler.ConstantLR(o),
    "(linear-lr o)": lambda o: torch.optim.lr_scheduler.LinearLR(o),
    "(polynomial-lr o :total 4 :power 2.0)": lambda o: torch.optim.lr_scheduler.PolynomialLR(o, 4, 2.0),
    "(cosine-annealing-lr o 4)": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4),
    "(one-cycle-lr o 0.9 10)": lambda o: torch.optim.lr_scheduler.OneCycleLR(
        o, 0.9, 10, cycle_momentum=False
    ),
    "(one-cycle-lr o 0.9 12 :linear #t :three-phase #t)": lambda o: torch.optim.lr_scheduler.OneCycleLR(
        o, 0.9, 12, anneal_strategy="linear", three_phase=True, cycle_momentum=False
    ),
    "(lambda-lr o (lambda (steps) (/ 1 (+ 1 steps))))": lambda o: torch.optim.lr_scheduler.LambdaLR(
        o, lambda steps: 1 / (1 + steps)
    ),
}
OF_THE_TABLE = {
    "(silu)": torch.nn.SiLU(),
    "(leaky-relu :negative-slope 0.2)": torch.nn.LeakyReLU(0.2),
    "(softplus :beta 2.0)": torch.nn.Softplus(2.0),
    "(avg-pool1d 2)": torch.nn.AvgPool1d(2),
    "(max-pool1d 3 :stride 1 :padding 1)": torch.nn.MaxPool1d(3, 1, 1),
    "(group-norm 3 3)": torch.nn.GroupNorm(3, 3),
    '(layer "huber" (lambda (x) (huber-loss x (* 3 x) :reduction (quote :sum))))': lambda x: (
        torch.nn.functional.huber_loss(x, 3 * x, reduction="sum")
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_gives_pytorchs_learning_rates(schedule):
    session = Session()
    session.run_text(f"(define o (sgd (list (parameter (tensor 1.0))) :lr 0.5)) (define s {schedule})", "n")
    reference = torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.5)
    scheduler = SCHEDULES[schedule](reference)
    for _ in range(7):
        assert session.run_text("(learning-rate o)", "n") == pytest.approx(scheduler.get_last_lr()[0])
        session.run_text("(scheduler-step s)", "n")
        reference.step()
        scheduler.step()


def test_layers_of_the_table_compute_what_pytorchs_do():
    session = Session()
    session.run_text("(define x (/ (tensor-reshape (tensor (iota 24 -12)) '(2 3 4)) 8.0))", "n")
    x = (torch.arange(24.0) - 12).reshape(2, 3, 4) / 8
    for layer, reference in OF_THE_TABLE.items():
        made = session.run_text(f"(detach (forward {layer} x))", "n")
        np.testing.assert_allclose(made.numpy(), reference(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_convolution_of_the_table_computes_what_pytorchs_does():
    session = Session()
    session.run_text("(define x (/ (tensor-reshape (tensor (iota 24 -12)) '(2 3 4)) 8.0))", "n")
    session.run_text("(define c (conv1d 3 6 2 :stride 2 :padding 1 :groups 3))", "n")
    reference = torch.nn.Conv1d(3, 6, 2, stride=2, padding=1, groups=3)
    weights = tensors(session, "(parameters c)")
    with torch.no_grad():
        for parameter, made in zip(reference.parameters(), weights):
            parameter.copy_(torch.from_numpy(np.array(made)))
    x = (torch.arange(24.0) - 12).reshape(2, 3, 4) / 8
    made = session.run_text("(detach (forward c x))", "n").numpy()
    np.testing.assert_allclose(made, reference(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_batches_keep_rows_together():
    session = Session()
    shown = session.run_text(
        "(map (lambda (b) (tensor->list (+ (first b) (second b))))"
        " (batches (list (tensor (iota 7)) (tensor (iota 7 0 -1))) :size 3 :shuffle #t))",
        "n",
    )
    assert [list(each) for each in shown] == [[0, 0, 0], [0, 0, 0], [0]]


def tensors(session: Session, program: str) -> list[np.ndarray]:
    return [each.detach().numpy() for each in session.run_text(program, "n")]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_steps_as_pytorchs_does(optimizer):
    session = Session()
    session.run_text(DATA, "n")
    weights = tensors(session, "(parameters model)")
    reference = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    with torch.no_grad():
        for parameter, weight in zip(reference.parameters(), weights):
            parameter.copy_(torch.tensor(weight))
    x = torch.tensor(session.run_text("x", "n").numpy())
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    session.run_text(f"(define opt {optimizer})", "n")
    torch_optimizer = OPTIMIZERS[optimizer](reference.parameters())
    for _ in range(4):
        loss = session.run_text("(tensor-item (step opt))", "n")
        torch_optimizer.zero_grad()
        expected = torch.nn.functional.cross_entropy(reference(x), y)
        expected.backward()
        torch_optimizer.step()
        assert loss == pytest.approx(expected.item(), rel=1e-5)
    for found, parameter in zip(tensors(session, "(parameters model)"), reference.parameters()):
        np.testing.assert_allclose(found, parameter.detach().numpy(), rtol=2e-4, atol=2e-6)


def test_muon_steps_as_pytorchs_does():
    session = Session()
    session.run_text(
        "(manual-seed 3) (define w (parameter (tensor-randn 5 3))) (define x (tensor-randn 4 5))", "n"
    )
    session.run_text("(define o (muon (list w) :lr 0.1))", "n")
    weight = torch.tensor(session.run_text("w", "n").detach().numpy()).requires_grad_()
    x = torch.tensor(session.run_text("x", "n").numpy())
    optimizer = torch.optim.Muon([weight], 0.1)
    for _ in range(3):
        session.run_text("(zero-grad o) (backward (tensor-sum (tensor-tanh (tensor-matmul x w))))", "n")
        session.run_text("(optimizer-step o)", "n")
        optimizer.zero_grad()
        (x @ weight).tanh().sum().backward()
        optimizer.step()
    found = session.run_text("w", "n").detach().numpy()
    np.testing.assert_allclose(found, weight.detach().numpy(), atol=4e-3)  # bfloat16 within


@pytest.mark.parametrize("step", ["(optimizer-step o)", "(optimizer-step)"])
def test_lbfgs_refuses_a_step_without_a_procedure_even_where_there_are_no_gradients(step):
    program = f"(define o (lbfgs (list (parameter (tensor '(1.0)))))) {step}"
    with pytest.raises(PurpleError, match="call optimizer-step-with"):
        Session().run_text(program, "n")


def test_lbfgs_steps_as_pytorchs_does():
    session = Session()
    session.run_text(
        "(define p (parameter (tensor '(-1.2 1.0)))) (define o (lbfgs (list p) :lr 0.1 :history-size 3))", "n"
    )
    session.run_text(
        "(define (loss) (zero-grad o)"
        " (let* ((a (tensor-narrow p 0 0 1)) (b (tensor-narrow p 0 1 1)) (c (- b (* a a)))"
        " (v (tensor-sum (+ (* (- 1.0 a) (- 1.0 a)) (* 5.0 (* c c)))))) (backward v) v))",
        "n",
    )
    point = torch.tensor([-1.2, 1.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([point], 0.1, history_size=3)

    def loss():
        optimizer.zero_grad()
        value = (1 - point[0]) ** 2 + 5 * (point[1] - point[0] ** 2) ** 2
        value.backward()
        return value

    for _ in range(3):
        found = session.run_text("(tensor-item (optimizer-step-with o loss))", "n")
        assert found == pytest.approx(optimizer.step(loss).item(), rel=1e-3)
    np.testing.assert_allclose(session.run_text("p", "n").detach().numpy(), point.detach().numpy(), rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "reference"),
    [
        ("", {}),
        (
            ":mode 'max :threshold 0.1 :threshold-mode 'abs :cooldown 1 :min-lr 0.2",
            {"mode": "max", "threshold": 0.1, "threshold_mode": "abs", "cooldown": 1, "min_lr": 0.2},
        ),
    ],
)
def test_a_schedule_waits_for_a_plateau_as_pytorchs_does(options, reference):
    session = Session()
    session.run_text("(define o (sgd (list (parameter (tensor 1.0))) :lr 0.5))", "n")
    session.run_text(f"(define s (reduce-lr-on-plateau o :patience 1 :factor 0.6 {options}))", "n")
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.6, **reference)
    for metric in (1.0, 0.9, 0.9, 0.95, 0.9, 0.9, 0.9, 1.2, 1.2, 1.25, 1.2, 1.2, 1.2):
        found = session.run_text(f"(scheduler-step s {metric})", "n")
        scheduler.step(metric)
        assert found == pytest.approx(optimizer.param_groups[0]["lr"])


LAYERS: dict[str, tuple[str, Any]] = {
    "(linear 4 3 :bias #f)": ("5 4", lambda: torch.nn.Linear(4, 3, bias=False)),
    "(conv2d 2 3 3 :stride 2 :padding 1)": ("2 2 6 6", lambda: torch.nn.Conv2d(2, 3, 3, 2, 1)),
    "(conv2d 2 3 3 :bias #f)": ("2 2 6 6", lambda: torch.nn.Conv2d(2, 3, 3, bias=False)),
    "(layer-norm 6)": ("2 3 6", lambda: torch.nn.LayerNorm(6)),
    "(batch-norm 3)": ("4 3 2 2", lambda: torch.nn.BatchNorm2d(3)),
    "(lstm 3 5)": ("4 2 3", lambda: torch.nn.LSTM(3, 5)),
    "(lstm 3 5 :batch-first #t)": ("4 2 3", lambda: torch.nn.LSTM(3, 5, batch_first=True)),
    "(max-pool2d 2)": ("1 1 6 6", lambda: torch.nn.MaxPool2d(2)),
    "(max-pool2d 3 :stride 1)": ("1 1 6 6", lambda: torch.nn.MaxPool2d(3, 1)),
    "(gelu)": ("3 4", torch.nn.GELU),
    "(relu)": ("3 4", torch.nn.ReLU),
    "(sigmoid)": ("3 4", torch.nn.Sigmoid),
    "(softmax 0)": ("3 4", lambda: torch.nn.Softmax(0)),
    "(log-softmax -1)": ("3 4", lambda: torch.nn.LogSoftmax(-1)),
    "(flatten)": ("2 3 4", torch.nn.Flatten),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_computes_what_pytorchs_does(layer):
    sizes, make = LAYERS[layer]
    session = Session()
    found = session.run_text(
        f"(define net {layer}) (define x (tensor-randn "
        f"{sizes})) (forward net x) (define out (forward net x)) out",
        "n",
    )
    reference = make()
    with torch.no_grad():
        for parameter, weight in zip(
            reference.parameters(), tensors(session, "(parameters net)"), strict=True
        ):
            parameter.copy_(torch.tensor(weight))
    x = torch.tensor(session.run_text("x", "n").numpy())
    reference(x)
    expected = reference(x)
    expected = expected[0] if isinstance(expected, tuple) else expected
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    if layer.startswith("(batch-norm"):
        session.run_text("(evaluating! net)", "n")
        reference.eval()
        np.testing.assert_allclose(
            session.run_text("(forward net x)", "n").detach().numpy(),
            reference(x).detach().numpy(),
            rtol=1e-4,
            atol=1e-5,
        )


def test_an_embedding_looks_up_its_rows():
    session = Session()
    session.run_text("(define net (embedding 5 3)) (define out (forward net (tensor '(4 0))))", "n")
    (weight,) = tensors(session, "(parameters net)")
    np.testing.assert_array_equal(session.run_text("out", "n").detach().numpy(), weight[[4, 0]])


LOSSES = {
    "(mse-loss (tensor '(1.0 2)) (tensor '(0.0 4)))": 2.5,
    "(l1-loss (tensor '(1.0 2)) (tensor '(0.0 4)))": 1.5,
    "(nll-loss (tensor '((-1.0 -2.0))) (tensor '(1)))": 2.0,
    "(cross-entropy (tensor '((0.0 0.0))) (tensor '(0)))": 0.6931472,
    "(binary-cross-entropy (tensor '(0.5)) (tensor '(1.0)))": 0.6931472,
    "(bce-with-logits (tensor '(0.0)) (tensor '(1.0)))": 0.6931472,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_has_its_value(loss):
    assert Session().run_text(f"(tensor-item {loss})", "n") == pytest.approx(LOSSES[loss])


def test_dropout_only_works_while_training(value):
    program = """(define net (sequential (dropout 0.5))) (define x (tensor-ones 100))
      (define training (tensor-item (tensor-sum (= (forward net x) 0))))
      (evaluating! net)
      (list (> training 10) (tensor-item (tensor-sum (= (forward net x) 0))) (begin (train! net) (>
        (tensor-item (tensor-sum (= (forward net x) 0))) 10)))"""
    assert value(program) == "(#t 0 #t)"


def test_a_layer_of_ones_own_is_made_of_a_closure(value):
    program = """(define (scaled inner)
        (let ((scale (parameter (tensor '(2.0)))))
          (layer "scaled" (lambda (x) (* (forward inner x) scale)) scale inner)))
      (define net (sequential (scaled (linear 3 2)) (lambda (x) (* x 10))))
      (list (length (parameters net)) (tensor-shape (forward net (tensor-ones 1 3))))"""
    assert value(program) == "(3 (1 2))"


PLANNED = """
(define model
  (sequential
    (linear 784 128)
    (relu)
    (linear 128 10)
    (softmax -1)))

(define (train-step x y)
  (let ((pred (forward model x)))
    (let ((loss (cross-entropy pred y)))
      (backward loss)
      (optimizer-step)
      loss)))

(for-each train-step training-data)
"""


def test_the_planned_training_program_runs_as_it_stands():
    session = Session()
    batch = "(list (tensor-randn 8 784) (tensor '(0 1 2 3 4 5 6 7)))"
    session.run_text(f"(define training-data (list {batch} {batch} {batch}))" + PLANNED, "plan")
    model = session.run_text("model", "plan")
    assert isinstance(model, Record)
    assert session.run_text("(null? (tensor-grad (car (parameters model))))", "plan") is True
    before = session.run_text("(define w (tensor-clone (car (parameters model)))) w", "plan").detach().numpy()
    session.run_text("(for-each train-step training-data)", "plan")
    after = session.run_text("(car (parameters model))", "plan").detach().numpy()
    assert np.abs(after - before).max() > 0


def test_the_planned_expressions_run(value):
    program = """(define x (tensor-randn 2 784)) (define a (tensor-randn 3 3)) (define b (tensor-randn 3 3))
      (list (tensor-shape (tensor-zeros 2 3)) (tensor-shape (tensor-ones 3 4 5)) (tensor-shape
        (tensor-randn 10 10))
            (tensor-shape (tensor-add a b)) (tensor-shape (tensor-mul a b)) (tensor-shape
              (tensor-matmul a b)) (tensor-shape (tensor-relu x))
            (tensor-shape (linear-layer 784 128 x)) (tensor-shape (conv2d-layer 3 64 3
              (tensor-randn 1 3 8 8)))
            (let ((x (tensor-randn 10 10))) (let ((y (tensor-relu x))) (tensor-shape (tensor-sum y))))
            (with-grad
              (let ((x (tensor-randn 10 10 :requires-grad t)))
                (let ((loss (tensor-sum (tensor-mul x x))))
                  (backward loss)
                  (tensor-shape (tensor-grad x))))))"""
    assert value(program) == "((2 3) (3 4 5) (10 10) (3 3) (3 3) (3 3) (2 784) (2 128) (1 64 6 6) () (10 10))"


def test_an_optimizer_step_without_a_model_says_so(failure):
    assert failure("(optimizer-step)").message == "optimizer-step: no model has been run yet"
    assert failure("(sgd (relu))").message == 'this optimizer has no parameters to change: "sgd"'


@pytest.mark.parametrize(
    "call, message",
    {
        "(asgd m :lr -1)": "asgd: :lr must not be negative, got -1",
        "(sgd m :momentum -0.5)": "sgd: :momentum must not be negative, got -0.5",
        "(adam m :beta2 1)": "adam: :beta2 must be at least 0 and below 1, got 1",
        "(rmsprop m :weight-decay -1)": "rmsprop: :weight-decay must not be negative, got -1",
    }.items(),
)
def test_optimizers_refuse_settings_out_of_range(call, message, failure):
    assert failure(f"(define m (linear 2 2)) {call}").message.startswith(message)


def test_a_step_of_gradient_descent_is_evaluated_once(monkeypatch):
    evaluated = []
    evaluate = tn.eval
    monkeypatch.setattr(tn, "eval", lambda *tensors: (evaluated.append(tensors), evaluate(*tensors)))
    session = Session()
    session.run_text("(define (loss p) (tensor-sum (* (- (first p) 3.0) (second p))))", "test.purple")
    session.run_text("(gradient-descent loss (list 1.0 (tensor '(1.0 2.0))) :steps 20)", "test.purple")
    assert len(evaluated) == 20
