"""Twenty small programs of every kind, for tests that look at each op of each."""

import tenfold as tn
from tenfold import nn

generator = tn.Generator().manual_seed(3)
linear = nn.Linear(4, 3)
mlp = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
cnn = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
attention = nn.MultiheadAttention(8, 2, batch_first=True)
lstm = nn.LSTM(3, 4, batch_first=True)
sgd = tn.optim.SGD(linear.parameters(), lr=0.1)
adam = tn.optim.Adam(mlp.parameters(), lr=0.1)


def scalars(x):
    y = x.tanh() * 2
    return (y + 1).sum()


def product(x):
    return (
        x
        @ x.T
    ).softmax(-1)  # fmt: skip


def loop(x):
    for _ in range(3):
        x = x * x + 1
    return x


def two_on_a_line(x):
    return x.exp() + x.log(), x.sin()


def layer(x):
    return linear(x)


def forward(x):
    return mlp(x)


def train(x):
    sgd.zero_grad()
    loss = (linear(x) ** 2).mean()
    loss.backward()
    sgd.step()
    return loss


def train_adam(x):
    adam.zero_grad()
    loss = nn.functional.cross_entropy(mlp(x), tn.zeros(3, dtype=tn.int64))
    loss.backward()
    adam.step()
    return loss


def convolve(x):
    return cnn(x.reshape(1, 1, 4, 4).repeat(1, 1, 2, 2)).sum()


def attend(x):
    return attention(x, x, x)[0]


def recur(x):
    return lstm(x)[0]


def indices(x):
    y = x.clone()
    y[0] = 1.0
    y[:, 1] += 2
    return y[[0, 2]], y.gather(1, tn.zeros(3, 1, dtype=tn.int64))


def branch(x):
    return tn.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))


def repeat(x):
    return tn.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (tn.tensor(0), x))[1]


def sort(x):
    values, places = x.sort(dim=-1)
    return values.cumsum(0), places.topk(2).values


def random(x):
    return x + tn.randn(x.shape, generator=generator)


def per_example(x):
    return tn.vmap(lambda row: (row * row).sum())(x)


def gradient(x):
    return tn.func.grad(lambda v: v.tanh().pow(3).sum())(x)


def second(x):
    return tn.func.grad(lambda v: tn.func.grad(lambda w: (w**3).sum())(v).sum())(x)


def normalise(x):
    return nn.functional.layer_norm(x, (4,)).clamp(-1, 1).std()


SHAPES = {"attend": (2, 3, 8), "recur": (2, 3, 3), "convolve": (4, 4)}
FUNCTIONS = (
    scalars, product, loop, two_on_a_line, layer, forward, train, train_adam, convolve, attend, recur,
    indices, branch, repeat, sort, random, per_example, gradient, second, normalise,
)  # fmt: skip


def inputs_of(function):
    shape = SHAPES.get(function.__name__, (3, 4))
    return tn.arange(1.0, 1 + tn.ones(shape).numel()).reshape(shape) / 10
