"""Programs in the manner of PyTorch's example collection and of nanoGPT, small: the loss of each step is
compared. `python pytorch_examples.py NAME` runs one of them."""

import math
import sys

import numpy as np
from stages import compare, gradients, numbers, same_weights, stage, whole

with stage("imports"):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    import torch.optim as optim
    from torch.distributions import Categorical
    from torch.utils.data import DataLoader, Dataset


def tensor(*shape):
    return torch.tensor(numbers(*shape))


def steps(model, optimizer, loss_of, batches, scheduler=None, clip=None):
    """An ordinary training loop; gives the losses."""
    losses = []
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(*batch)
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
    return losses


class WordModel(nn.Module):
    def __init__(self, kind="LSTM", words=20, size=12):
        super().__init__()
        self.encoder, self.decoder = nn.Embedding(words, size), nn.Linear(size, words)
        self.rnn = getattr(nn, kind)(size, size, 2, dropout=0.0)
        self.decoder.weight = self.encoder.weight  # tied

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return F.log_softmax(self.decoder(output).view(-1, 20), dim=1), hidden


def word_language_model():
    model = WordModel()
    same_weights(torch, model, 0.3)
    data = torch.tensor(whole(0, 20, 31, 4))
    hidden = (torch.zeros(2, 4, 12), torch.zeros(2, 4, 12))
    losses = []
    for start in range(0, 30, 5):  # truncated backpropagation, and SGD by hand
        hidden = tuple(each.detach() for each in hidden)
        model.zero_grad()
        output, hidden = model(data[start : start + 5], hidden)
        loss = F.nll_loss(output, data[start + 1 : start + 6].view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-5.0)
        losses.append(loss.item())
    return model, losses


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine, self.action, self.value = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action(x), dim=-1), self.value(x)


def actor_critic():
    model = Policy()
    same_weights(torch, model, 0.4)
    optimizer, losses = optim.Adam(model.parameters(), lr=3e-2), []
    for length in (5, 9, 7):
        saved, rewards = [], []
        for step in range(length):
            state = torch.from_numpy(numbers(4)).float()
            probabilities, value = model(state)
            choice = torch.tensor(step % 2)  # what is drawn differs between engines
            saved.append((Categorical(probabilities).log_prob(choice), value))
            rewards.append(1.0 if step % 3 else 0.5)
        returns, total = [], 0
        for reward in rewards[::-1]:
            total = reward + 0.99 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps.item())
        policy = [-log * (each - value.item()) for (log, value), each in zip(saved, returns)]
        values = [F.smooth_l1_loss(value, torch.tensor([each])) for (_, value), each in zip(saved, returns)]
        optimizer.zero_grad()
        loss = torch.stack(policy).sum() + torch.stack(values).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1, self.lstm2, self.linear = nn.LSTMCell(1, 6), nn.LSTMCell(6, 6), nn.Linear(6, 1)

    def forward(self, input, future=0):
        outputs = []
        h, c, h2, c2 = (torch.zeros(input.size(0), 6, dtype=torch.double) for _ in range(4))
        for piece in input.split(1, dim=1):
            h, c = self.lstm1(piece, (h, c))
            h2, c2 = self.lstm2(h, (h2, c2))
            output = self.linear(h2)
            outputs += [output]
        for _ in range(future):
            h, c = self.lstm1(output, (h, c))
            h2, c2 = self.lstm2(h, (h2, c2))
            output = self.linear(h2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


def time_sequences():
    model = Sequence().double()
    same_weights(torch, model, 0.4)
    data = torch.from_numpy(np.sin(np.arange(12)[None] / 3.0 + np.arange(3)[:, None]))
    optimizer, losses = optim.LBFGS(model.parameters(), lr=0.4, max_iter=4), []

    def closure():
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(data[:, :-1]), data[:, 1:])
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(2):
        optimizer.step(closure)
    with torch.no_grad():
        compare("future", model(data[:1, :-1], future=5))
    return model, losses


def super_resolution():
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2)
    )
    same_weights(torch, model, 0.2)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    batches = [(tensor(2, 1, 6, 6), tensor(2, 1, 12, 12)) for _ in range(4)]
    return model, steps(model, optimizer, lambda x, y: F.mse_loss(model(x), y), batches)


def neural_style():
    features = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.InstanceNorm2d(6, affine=True))
    same_weights(torch, features, 0.4)
    for parameter in features.parameters():
        parameter.requires_grad = False

    def gram(x):
        b, c, h, w = x.size()
        flat = x.view(b, c, h * w)
        return flat.bmm(flat.transpose(1, 2)) / (c * h * w)

    content, style = tensor(1, 3, 8, 8), tensor(1, 3, 8, 8)
    image = content.clone().requires_grad_(True)
    optimizer = optim.Adam([image], lr=0.05)
    wanted = gram(features(style)).detach()
    loss_of = lambda: (
        F.mse_loss(features(image), features(content)) + 10 * F.mse_loss(gram(features(image)), wanted)
    )
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            image.clamp_(-2, 2)
        losses.append(loss.item())
    return None, losses


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.empty(inputs, outputs)),
            nn.Parameter(torch.zeros(outputs)),
        )
        nn.init.xavier_normal_(self.weight)

    def forward(self, x, adjacency):
        return torch.spmm(adjacency, torch.mm(x, self.weight)) + self.bias


def graph_convolution():
    first, second = GraphConvolution(5, 8), GraphConvolution(8, 3)
    model = nn.ModuleList([first, second])
    same_weights(torch, model, 0.4)
    edges = torch.tensor(whole(0, 10, 2, 30))
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(30), (10, 10)).coalesce()
    adjacency = adjacency + torch.eye(10).to_sparse()
    degrees = torch.sparse.sum(adjacency, 1).to_dense().pow(-1)
    adjacency = torch.diag(degrees).to_sparse() @ adjacency
    x, y = tensor(10, 5), torch.tensor(whole(0, 3, 10))
    optimizer = optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
    loss_of = lambda: F.nll_loss(F.log_softmax(second(F.relu(first(x, adjacency)), adjacency), 1)[:7], y[:7])
    return model, steps(model, optimizer, loss_of, [()] * 5)


class GraphAttention(nn.Module):
    def __init__(self, inputs, outputs, heads):
        super().__init__()
        self.heads, self.hidden = heads, outputs // heads
        self.W = nn.Parameter(torch.empty(inputs, outputs))
        self.a = nn.Parameter(torch.empty(heads, 2 * self.hidden, 1))

    def forward(self, h, adjacency):
        n = h.shape[0]
        h = torch.mm(h, self.W).view(n, self.heads, self.hidden).permute(1, 0, 2)
        source = torch.matmul(h, self.a[:, : self.hidden, :])
        target = torch.matmul(h, self.a[:, self.hidden :, :])
        e = F.leaky_relu(source + target.mT, 0.2)
        e = torch.where(adjacency > 0, e, -9e16 * torch.ones_like(e))
        return torch.matmul(F.softmax(e, dim=-1), h).permute(1, 0, 2).contiguous().view(n, -1)


def graph_attention():
    model = nn.ModuleList([GraphAttention(5, 8, 2), GraphAttention(8, 3, 1)])
    same_weights(torch, model, 0.4)
    adjacency = (torch.tensor(numbers(10, 10)) > 0).float() + torch.eye(10)
    x, y = tensor(10, 5), torch.tensor(whole(0, 3, 10))
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    loss_of = lambda: F.cross_entropy(model[1](F.elu(model[0](x, adjacency)), adjacency), y)
    return model, steps(model, optimizer, loss_of, [()] * 5)


def siamese_network():
    trunk = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    head = nn.Sequential(nn.Linear(72, 8), nn.ReLU(inplace=True), nn.Linear(8, 1), nn.Sigmoid())
    model = nn.ModuleList([trunk, head])
    same_weights(torch, model, 0.3)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    batches = [
        (tensor(6, 1, 8, 8), tensor(6, 1, 8, 8), torch.tensor(whole(0, 2, 6)).float()) for _ in range(3)
    ]
    loss_of = lambda a, b, y: nn.BCELoss()(head(torch.cat((trunk(a), trunk(b)), 1)[:, :72]).squeeze(), y)
    return model, steps(model, optimizer, loss_of, batches, schedule)


class PositionalEncoding(nn.Module):
    def __init__(self, size, length=20):
        super().__init__()
        rates = torch.exp(-torch.arange(0, size, 2) * math.log(10000) / size)
        places = torch.arange(0, length).reshape(length, 1)
        table = torch.zeros((length, size))
        table[:, 0::2], table[:, 1::2] = torch.sin(places * rates), torch.cos(places * rates)
        self.register_buffer("table", table.unsqueeze(-2))

    def forward(self, x):
        return x + self.table[: x.size(0), :]


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)
        self.source, self.target = nn.Embedding(11, 8), nn.Embedding(13, 8)
        self.places, self.generator = PositionalEncoding(8), nn.Linear(8, 13)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(0))
        padding = (source == 1).transpose(0, 1)
        a, b = (
            self.places(self.source(source) * math.sqrt(8)),
            self.places(self.target(target) * math.sqrt(8)),
        )
        result = self.transformer(a, b, None, mask, None, padding, None, padding)
        return self.generator(result)


def translation():
    model = Translator()
    same_weights(torch, model, 0.3)
    optimizer = optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    loss = nn.CrossEntropyLoss(ignore_index=1)
    source = whole(2, 11, 6, 3)
    source[4:, 1] = 1
    target = torch.tensor(whole(2, 13, 7, 3))
    loss_of = lambda: loss(model(torch.tensor(source), target[:-1]).reshape(-1, 13), target[1:].reshape(-1))
    return model, steps(model, optimizer, loss_of, [()] * 4)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.mean, self.spread = nn.Linear(16, 8), nn.Linear(8, 3), nn.Linear(8, 3)
        self.fc3, self.fc4 = nn.Linear(3, 8), nn.Linear(8, 16)

    def forward(self, x, noise):
        h = F.relu(self.fc1(x.view(-1, 16)))
        mu, logvar = self.mean(h), self.spread(h)
        z = mu + noise * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


def vae():
    model = VAE()
    same_weights(torch, model, 0.3)

    def loss_of(x, noise):
        found, mu, logvar = model(x, noise)
        likeness = F.binary_cross_entropy(found, x.view(-1, 16), reduction="sum")
        return likeness - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())

    batches = [(torch.sigmoid(tensor(5, 1, 4, 4)), tensor(5, 3)) for _ in range(4)]
    return model, steps(model, optim.Adam(model.parameters(), lr=1e-2), loss_of, batches)


def dcgan():
    generator = nn.Sequential(
        nn.ConvTranspose2d(4, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Conv2d(1, 6, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(6, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
    )  # fmt: skip
    same_weights(torch, generator, 0.2)
    same_weights(torch, critic, 0.2)
    judge, losses = nn.BCELoss(), []
    for_critic = optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for_generator = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for _ in range(3):
        critic.zero_grad()
        label = torch.full((3,), 1.0)
        real = judge(critic(tensor(3, 1, 8, 8)).view(-1), label)
        real.backward()
        made = generator(tensor(3, 4, 1, 1))
        label.fill_(0.0)
        false = judge(critic(made.detach()).view(-1), label)
        false.backward()
        for_critic.step()
        generator.zero_grad()
        label.fill_(1.0)
        fooled = judge(critic(made).view(-1), label)
        fooled.backward()
        for_generator.step()
        losses += [real.item(), false.item(), fooled.item()]
    return generator, losses


class Digits(Dataset):
    def __init__(self):
        self.images, self.labels = numbers(24, 1, 12, 12), whole(0, 10, 24)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]), int(self.labels[index])


def mnist():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100, 10), nn.LogSoftmax(1)
    )
    same_weights(torch, model, 0.2)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    loader = DataLoader(Digits(), batch_size=8, num_workers=2)
    losses = steps(model, optimizer, lambda x, y: F.nll_loss(model(x), y), loader)
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            prediction = model(data).argmax(dim=1, keepdim=True)
            correct += prediction.eq(target.view_as(prediction)).sum().item()
    compare("correct", np.array(correct), "tokens")
    return model, losses


def forward_forward():
    layers = nn.ModuleList([nn.Linear(6, 8), nn.Linear(8, 8)])
    same_weights(torch, layers, 0.4)
    good, bad, losses = tensor(5, 6), tensor(5, 6), []

    def run(layer, x):
        return torch.relu(torch.mm(x / (x.norm(2, 1, keepdim=True) + 1e-4), layer.weight.T) + layer.bias)

    for layer in layers:
        optimizer = optim.Adam(layer.parameters(), lr=0.03)
        for _ in range(3):
            up, down = run(layer, good).pow(2).mean(1), run(layer, bad).pow(2).mean(1)
            loss = torch.log(1 + torch.exp(torch.cat([-up + 2.0, down - 2.0]))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        good, bad = run(layer, good).detach(), run(layer, bad).detach()
    return None, losses


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attn, self.proj = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size, bias=False)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))
        self.heads = heads

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (each.view(b, t, self.heads, c // self.heads).transpose(1, 2) for each in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, words=17, block=8, size=16):
        super().__init__()
        self.block = block
        self.wte, self.wpe = nn.Embedding(words, size), nn.Embedding(block, size)
        self.h, self.ln_f = nn.ModuleList([Block(size, 2) for _ in range(2)]), nn.LayerNorm(size)
        self.lm_head = nn.Linear(size, words, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(0, idx.size(1), dtype=torch.long))
        for block in self.h:
            x = block(x)
        x = self.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    @torch.no_grad()
    def generate(self, idx, count):
        for _ in range(count):
            logits, _ = self(idx[:, -self.block :])
            idx = torch.cat((idx, logits[:, -1, :].argmax(-1, keepdim=True)), dim=1)
        return idx


def nanogpt():
    model = GPT()
    same_weights(torch, model, 0.2)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    data, losses = whole(0, 17, 60), []
    step = torch.compile(model, backend="eager")
    for iteration in range(4):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * (iteration + 1) / 4
        for micro in range(2):
            x = torch.stack([torch.from_numpy(data[i : i + 8]) for i in (micro, micro + 9, micro + 21)])
            y = torch.stack([torch.from_numpy(data[i + 1 : i + 9]) for i in (micro, micro + 9, micro + 21)])
            with torch.amp.autocast("cpu", enabled=False):
                loss = step(x, y)[1] / 2
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item() * 2)
    model.eval()
    compare("generated", model.generate(torch.zeros(1, 1, dtype=torch.long), 10), "tokens")
    return None, losses


PROGRAMS = (
    word_language_model, actor_critic, time_sequences, super_resolution, neural_style, graph_convolution,
    graph_attention, siamese_network, translation, vae, dcgan, mnist, forward_forward, nanogpt,
)  # fmt: skip

if __name__ == "__main__":
    for program in PROGRAMS:
        if len(sys.argv) > 1 and program.__name__ not in sys.argv[1:]:
            continue
        with stage("trains"):
            model, losses = program()
            compare(f"losses of {program.__name__}", np.array(losses, "float32"))
            if model is not None:
                gradients(model, f"{program.__name__}: ")
            print(program.__name__, [round(each, 4) for each in losses], flush=True)
