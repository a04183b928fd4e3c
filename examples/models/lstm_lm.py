"""A language model of LSTM layers, with the parameter names of PyTorch's word-level example.

```python
model = word_model()
scores, state = model(tokens)  # (length, n) to (length, n, 33278)
scores, state = model(following, state)
```
"""

from tenfold import nn


class LSTMLanguageModel(nn.Module):
    """Tokens of shape (length, n) to scores of the one that follows each, and the state to go on from."""

    def __init__(self, vocabulary, width=200, hidden=200, layers=2, dropout=0.2, tied=False):
        super().__init__()
        if tied and width != hidden:
            raise ValueError(f"tied weights need width and hidden to be equal, not {width} and {hidden}")
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, hidden, layers, dropout=dropout)
        self.decoder = nn.Linear(hidden, vocabulary)
        if tied:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, tokens, state=None):
        x = self.drop(self.encoder(tokens))
        x, state = self.rnn(x, state)
        return self.decoder(self.drop(x)), state


def word_model(**options):
    """Of the size that the example has by default, for the words of WikiText-2."""
    return LSTMLanguageModel(**{"vocabulary": 33278, **options})
