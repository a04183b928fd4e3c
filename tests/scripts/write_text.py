"""A character model: embedding, LSTM, truncated gradients; then the text that it writes."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

TEXT = "a rose is a rose is a rose and so is a daisy a daisy "
letters = sorted(set(TEXT))
index = {letter: i for i, letter in enumerate(letters)}


def encode(text: str) -> torch.LongTensor:
    return torch.tensor([index[each] for each in text], dtype=torch.long)


class CharModel(nn.Module):
    def __init__(self, size: int, embedded: int = 8, hidden: int = 24, layers: int = 1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, embedded)
        self.lstm = nn.LSTM(embedded, hidden, layers, batch_first=True)
        self.decoder = nn.Linear(hidden, size)

    def forward(
        self, tokens: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        output, state = self.lstm(self.embedding(tokens), state)
        return self.decoder(output), state


def fill(model: nn.Module) -> None:
    rng = np.random.RandomState(0)
    for parameter in model.parameters():
        parameter.data = torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(parameter.shape)).astype("float32"))


model = CharModel(len(letters))
fill(model)
print(model)
data = encode(TEXT * 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
loss_function = nn.CrossEntropyLoss()
window = 26
state = None
for step in range(11):
    start = step * 10 % (len(data) - window - 1)
    chunk = data[start : start + window + 1].unsqueeze(0)
    optimizer.zero_grad()
    scores, state = model(chunk[:, :-1], state)
    state = tuple(each.detach() for each in state)
    loss = loss_function(scores.view(-1, len(letters)), chunk[:, 1:].reshape(-1))
    loss.backward()
    norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step:2d} loss {loss.item():.5f} norm {norm.item():.5f}")


@torch.no_grad()
def write(model: CharModel, prompt: str, count: int) -> str:
    model.eval()
    written: list[str] = list(prompt)
    scores, state = model(encode(prompt)[None])
    for _ in range(count):
        token = scores[0, -1].argmax()
        written.append(letters[int(token)])
        scores, state = model(token.view(1, 1), state)
    return "".join(written)


print(repr(write(model, "a ro", 6)))

# Sequences of different lengths.
words = [encode(word) for word in ("daisy", "rose", "is")]
lengths = torch.tensor([len(word) for word in words])
padded = pad_sequence(words, batch_first=True)
packed = pack_padded_sequence(model.embedding(padded), lengths, batch_first=True)
output, (hidden, _) = model.lstm(packed)
unpacked, found = pad_packed_sequence(output, batch_first=True)
print(tuple(unpacked.shape), found.tolist(), hidden.norm().item(), unpacked[2, 3].abs().sum().item())
