"""The Vision Transformer, ViT-B/16 and its sisters, with the parameter names of torchvision's, whose
checkpoints they load.

```python
model = vit_b_16()
model.load_state_dict(torch.load("vit_b_16-c867db91.pth"))
```
"""

from collections import OrderedDict
from functools import partial

import tenfold as torch
from tenfold import nn

LayerNorm = partial(nn.LayerNorm, eps=1e-6)


class EncoderBlock(nn.Module):
    """Self-attention, then a perceptron for each token, each on normalised input and beside a shortcut."""

    def __init__(self, heads, width, hidden, dropout):
        super().__init__()
        self.ln_1 = LayerNorm(width)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, width),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + self.dropout(y)
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Adds a vector for each place, then applies the blocks."""

    def __init__(self, length, layers, heads, width, hidden, dropout):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, length, width))
        nn.init.normal_(self.pos_embedding, std=0.02)
        self.dropout = nn.Dropout(dropout)
        blocks = ((f"encoder_layer_{k}", EncoderBlock(heads, width, hidden, dropout)) for k in range(layers))
        self.layers = nn.Sequential(OrderedDict(blocks))
        self.ln = LayerNorm(width)

    def forward(self, x):
        return self.ln(self.layers(self.dropout(x + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """Images of shape (n, 3, size, size) to scores of shape (n, classes)."""

    def __init__(self, size, patch, layers, heads, width, hidden, classes=1000, dropout=0.0):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        length = (size // patch) ** 2 + 1
        self.encoder = Encoder(length, layers, heads, width, hidden, dropout)
        self.heads = nn.Sequential(OrderedDict(head=nn.Linear(width, classes)))

    def forward(self, x):
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)
        token = self.class_token.expand(len(x), -1, -1)
        x = self.encoder(torch.cat([token, patches], 1))
        return self.heads(x[:, 0])


def vit_b_16(**options):
    sizes = {"size": 224, "patch": 16, "layers": 12, "heads": 12, "width": 768, "hidden": 3072}
    return VisionTransformer(**{**sizes, **options})


def vit_b_32(**options):
    return vit_b_16(**{"patch": 32, **options})


def vit_l_16(**options):
    return vit_b_16(**{"layers": 24, "heads": 16, "width": 1024, "hidden": 4096, **options})
