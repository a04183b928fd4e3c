"""MobileNetV3, large and small, for images on small devices, with the parameter names of torchvision's, whose
checkpoints they load.

```python
model = mobilenet_v3_small()
model.load_state_dict(torch.load("mobilenet_v3_small-047dcff4.pth"))
```
"""

from functools import partial

import tenfold as torch
from tenfold import nn

BatchNorm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)

# Each row is a block: kernel, channels inside, channels out, squeeze and excitation, activation, stride.
LARGE = (
    (3, 16, 16, False, nn.ReLU, 1),
    (3, 64, 24, False, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 1),
    (5, 72, 40, True, nn.ReLU, 2),
    (5, 120, 40, True, nn.ReLU, 1),
    (5, 120, 40, True, nn.ReLU, 1),
    (3, 240, 80, False, nn.Hardswish, 2),
    (3, 200, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 480, 112, True, nn.Hardswish, 1),
    (3, 672, 112, True, nn.Hardswish, 1),
    (5, 672, 160, True, nn.Hardswish, 2),
    (5, 960, 160, True, nn.Hardswish, 1),
    (5, 960, 160, True, nn.Hardswish, 1),
)
SMALL = (
    (3, 16, 16, True, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 2),
    (3, 88, 24, False, nn.ReLU, 1),
    (5, 96, 40, True, nn.Hardswish, 2),
    (5, 240, 40, True, nn.Hardswish, 1),
    (5, 240, 40, True, nn.Hardswish, 1),
    (5, 120, 48, True, nn.Hardswish, 1),
    (5, 144, 48, True, nn.Hardswish, 1),
    (5, 288, 96, True, nn.Hardswish, 2),
    (5, 576, 96, True, nn.Hardswish, 1),
    (5, 576, 96, True, nn.Hardswish, 1),
)


def rounded(channels):
    """To a multiple of 8 that is at most a tenth less."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * channels else nearest + 8


def convolution(inputs, outputs, kernel, stride=1, groups=1, activation=None):
    padding = (kernel - 1) // 2
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
        BatchNorm(outputs),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class SqueezeExcitation(nn.Module):
    """Scales each channel by a factor that is computed from the means of all."""

    def __init__(self, channels, squeezed):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        scale = nn.functional.adaptive_avg_pool2d(x, 1)
        scale = self.fc2(nn.functional.relu(self.fc1(scale)))
        return x * nn.functional.hardsigmoid(scale)


class InvertedResidual(nn.Module):
    """Widen, convolve each channel alone, weigh the channels, narrow; with a shortcut where shapes allow."""

    def __init__(self, inputs, kernel, inside, outputs, excited, activation, stride):
        super().__init__()
        layers = [] if inside == inputs else [convolution(inputs, inside, 1, activation=activation)]
        layers.append(convolution(inside, inside, kernel, stride, inside, activation))
        if excited:
            layers.append(SqueezeExcitation(inside, rounded(inside // 4)))
        layers.append(convolution(inside, outputs, 1))
        self.block = nn.Sequential(*layers)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.block(x)
        return x + y if self.shortcut else y


class MobileNetV3(nn.Module):
    """Images of shape (n, 3, height, width) to scores of shape (n, classes)."""

    def __init__(self, blocks, hidden, classes=1000, width=1.0, dropout=0.2):
        super().__init__()
        channels = rounded(16 * width)
        features = [convolution(3, channels, 3, stride=2, activation=nn.Hardswish)]
        for kernel, inside, outputs, excited, activation, stride in blocks:
            inside, outputs = rounded(inside * width), rounded(outputs * width)
            features.append(InvertedResidual(channels, kernel, inside, outputs, excited, activation, stride))
            channels = outputs
        features.append(convolution(channels, 6 * channels, 1, activation=nn.Hardswish))
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * channels, hidden), nn.Hardswish(), nn.Dropout(dropout), nn.Linear(hidden, classes)
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def mobilenet_v3_large(**options):
    return MobileNetV3(LARGE, **{"hidden": 1280, **options})


def mobilenet_v3_small(**options):
    return MobileNetV3(SMALL, **{"hidden": 1024, **options})
