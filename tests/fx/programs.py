"""Programs that are traced by both: each function takes the package and gives a module or a function."""

import math
import operator


def resnet(t):
    nn = t.nn

    class Block(nn.Module):
        def __init__(self, inside, out, stride=1):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
            self.relu = nn.ReLU(inplace=True)
            self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
            changes = stride != 1 or inside != out
            self.downsample = nn.Sequential(nn.Conv2d(inside, out, 1, stride)) if changes else None

        def forward(self, x):
            identity = x
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            if self.downsample is not None:
                identity = self.downsample(x)
            out += identity
            return self.relu(out)

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 8, 3, 2, 3)
            self.layer1 = nn.Sequential(Block(8, 8), Block(8, 16, 2))
            self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, 10)

        def forward(self, x):
            return self.fc(t.flatten(self.avgpool(self.layer1(self.conv1(x))), 1))

    return ResNet().eval(), (t.ones(2, 3, 16, 16),)


def attention(t):
    class Attention(t.nn.Module):
        def __init__(self, width=8):
            super().__init__()
            self.qkv = t.nn.Linear(width, 3 * width)
            self.scale = t.nn.Parameter(t.ones(1))
            self.register_buffer("bias", t.ones(4, 4).tril())
            self.width = width

        def forward(self, x, mask=None, k: int = 2):
            b, length, _c = x.shape
            q, key, v = self.qkv(x).chunk(3, dim=-1)
            a = (q @ key.transpose(-2, -1)) / math.sqrt(self.width) * self.scale
            a = a.masked_fill(self.bias == 0, float("-inf"))
            a = t.nn.functional.dropout(a.softmax(-1), p=0.1, training=False, inplace=False)
            y = t.cat([a @ v, x], dim=2).view(b, length, -1)
            return {"y": y, "z": [y.sum(), -y[0], 1 - y, y.size(0), t.zeros(2, dtype=t.float64)]}

    return Attention(), (t.arange(64.0).reshape(2, 4, 8) / 64,)


def function(t):
    def compute(x, y=2, *, z=3):
        a = t.add(x, y)
        a = a.relu() ** 2
        return t.sum(a, dim=1, keepdim=True), t.max(a), operator.and_(x > 0, x < z), abs(x), 2 // (x + 1)

    return compute, (t.arange(6.0).reshape(2, 3),)


def recurrent(t):
    class Cell(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = t.nn.GRUCell(3, 4)
            self.heads = t.nn.ModuleList([t.nn.Linear(4, 2), t.nn.Linear(4, 1)])

        def forward(self, steps, hidden):
            for i in range(3):
                hidden = self.cell(steps[:, i], hidden)
            return [head(hidden) for head in self.heads], hidden[..., None].mean(dim=(0, 1))

    return Cell(), (t.ones(2, 3, 3), t.zeros(2, 4))


ALL = (resnet, attention, function, recurrent)
