"""Fit a cubic to a sine: by hand, by autograd, by a module and an optimizer."""

import math

import torch

dtype = torch.float64
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

x = torch.linspace(-math.pi, math.pi, 200, device=device, dtype=dtype)
y = torch.sin(x)

# Gradients by hand.
a, b, c, d = (torch.full((), value, device=device, dtype=dtype) for value in (0.1, -0.2, 0.3, -0.4))
learning_rate = 1e-6
for _ in range(200):
    predicted = a + b * x + c * x**2 + d * x**3
    gradient = 2.0 * (predicted - y)
    a -= learning_rate * gradient.sum()
    b -= learning_rate * (gradient * x).sum()
    c -= learning_rate * (gradient * x**2).sum()
    d -= learning_rate * (gradient * x**3).sum()
print("by hand", a.item(), b.item(), c.item(), d.item())

# The same by autograd.
weights = [torch.tensor(value, dtype=dtype, requires_grad=True) for value in (0.1, -0.2, 0.3, -0.4)]
for _ in range(200):
    loss = sum((w * x**i for i, w in enumerate(weights)), -y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for w in weights:
            w -= learning_rate * w.grad
            w.grad = None
print("by autograd", *[w.item() for w in weights], loss.item())


class LegendrePolynomial3(torch.autograd.Function):
    """½(5x³ - 3x), with its derivative written out."""

    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class Curve(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Parameter(torch.zeros((), dtype=dtype))
        self.b = torch.nn.Parameter(torch.full((), -1.0, dtype=dtype))
        self.c = torch.nn.Parameter(torch.zeros((), dtype=dtype))
        self.d = torch.nn.Parameter(torch.full((), 0.3, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a + self.b * LegendrePolynomial3.apply(self.c + self.d * x)

    def string(self) -> str:
        return (
            f"y = {self.a.item():.6f} + {self.b.item():.6f} P3({self.c.item():.6f} + {self.d.item():.6f} x)"
        )


model = Curve().to(device)
criterion = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=5e-6)
for step in range(100):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(step, loss.item())
print(model.string())
