"""U-Net for the segmentation of images: down to a sixteenth of their size and up again, with a shortcut at
each size. Parameters have the names of the implementation most checkpoints come from (inc, down1, up1, outc).

```python
model = UNet(channels=3, classes=2)
scores = model(images)  # (n, 3, height, width) to (n, 2, height, width)
```
"""

import tenfold as torch
import tenfold.nn.functional as F
from tenfold import nn


class DoubleConv(nn.Module):
    """Twice a 3×3 convolution, batch normalisation and ReLU."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    """Half the size, then convolutions."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    """Twice the size, then convolutions together with what had that size on the way down."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, stride=2)
        self.conv = DoubleConv(inputs, outputs)

    def forward(self, x, beside):
        x = self.up(x)
        # An odd size was rounded down on the way: what is missing is filled up, about half on each side.
        tall, wide = beside.shape[2] - x.shape[2], beside.shape[3] - x.shape[3]
        x = F.pad(x, (wide // 2, wide - wide // 2, tall // 2, tall - tall // 2))
        return self.conv(torch.cat([beside, x], 1))


class OutConv(nn.Module):
    """Scores of the classes at each pixel."""

    def __init__(self, inputs, classes):
        super().__init__()
        self.conv = nn.Conv2d(inputs, classes, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    """Images of shape (n, channels, height, width) to scores of shape (n, classes, height, width)."""

    def __init__(self, channels=3, classes=2, width=64):
        super().__init__()
        self.inc = DoubleConv(channels, width)
        self.down1 = Down(width, 2 * width)
        self.down2 = Down(2 * width, 4 * width)
        self.down3 = Down(4 * width, 8 * width)
        self.down4 = Down(8 * width, 16 * width)
        self.up1 = Up(16 * width, 8 * width)
        self.up2 = Up(8 * width, 4 * width)
        self.up3 = Up(4 * width, 2 * width)
        self.up4 = Up(2 * width, width)
        self.outc = OutConv(width, classes)

    def forward(self, x):
        at1 = self.inc(x)
        at2 = self.down1(at1)
        at4 = self.down2(at2)
        at8 = self.down3(at4)
        x = self.down4(at8)
        x = self.up2(self.up1(x, at8), at4)
        x = self.up4(self.up3(x, at2), at1)
        return self.outc(x)
