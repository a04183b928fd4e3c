"""Train a small convolutional network on drawn shapes, save it, load it, and measure it.

In double precision: in single precision the sign of one activation hangs on a rounding, and PyTorch differs
from itself between one thread and two.
"""

from __future__ import annotations

import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.backends.cudnn.benchmark = True
device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")


class Shapes(Dataset):
    """Images of a bar that lies, a bar that stands, or a cross, with noise."""

    def __init__(self, count: int) -> None:
        rng = np.random.default_rng(0)
        self.labels = torch.from_numpy(rng.integers(0, 3, count))
        images = rng.normal(0, 0.3, (count, 1, 12, 12))
        for image, label in zip(images, self.labels.tolist()):
            at = rng.integers(3, 9)
            if label != 1:
                image[0, at] += 1
            if label != 0:
                image[0, :, at] += 1
        self.images = torch.tensor(images)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 8, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.dropout = nn.Dropout(0.0)
        self.fc = nn.Sequential(nn.Linear(8 * 2 * 2, 16), nn.ReLU(inplace=True), nn.Linear(16, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(F.relu(self.norm(self.conv1(x))))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        return self.fc(self.dropout(x))


def reproducible(model: nn.Module) -> None:
    """Weights from NumPy, so that they do not depend on whose generator draws them."""
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                drawn = rng.normal(0, 0.2, tuple(parameter.shape))
                parameter.copy_(torch.from_numpy(drawn))


def accuracy(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for images, labels in loader:
            outputs = model(images.to(device))
            _, predicted = torch.max(outputs, 1)
            total += labels.size(0)
            correct += (predicted.cpu() == labels).sum().item()
    return correct / total


dataset = Shapes(96)
first, second = random_split(dataset, [64, 32], generator=torch.Generator().manual_seed(42))
print("split", len(first), len(second))
train = TensorDataset(dataset.images[:64], dataset.labels[:64])
train_loader = DataLoader(train, batch_size=16, shuffle=False, num_workers=0)
test_loader = DataLoader(TensorDataset(dataset.images[64:], dataset.labels[64:]), batch_size=32)

model = Net().to(device)
reproducible(model)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
print("parameters", sum(p.numel() for p in model.parameters() if p.requires_grad))

for epoch in range(4):
    model.train()
    running_loss = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * inputs.size(0)
    scheduler.step()
    print("epoch", epoch, running_loss / len(train), scheduler.get_last_lr()[0])

file = io.BytesIO()
torch.save({"model": model.state_dict(), "epoch": 4}, file)
file.seek(0)
checkpoint = torch.load(file, weights_only=True)
again = Net()
print(again.load_state_dict(checkpoint["model"]))
print("accuracy", accuracy(model, test_loader), accuracy(again.to(device), test_loader))
