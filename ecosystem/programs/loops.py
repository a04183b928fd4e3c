"""A training loop by accelerate, values of torchmetrics, and files of safetensors."""

from stages import compare, folder, gradients, numbers, same_weights, stage, whole

with stage("imports"):
    import torch
    import torchmetrics
    from accelerate import Accelerator
    from safetensors.torch import load_file, save_file
    from torch.utils.data import DataLoader, TensorDataset

with stage("builds"):
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    same_weights(torch, model, 0.3)
    data = TensorDataset(torch.tensor(numbers(24, 6)), torch.tensor(whole(0, 3, 24)))
    accelerator = Accelerator(cpu=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=8))

with stage("trains"):
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            output = model(x)
            loss = torch.nn.functional.cross_entropy(output, y)
            accelerator.backward(loss)
            optimizer.step()
            accuracy.update(output.softmax(-1), y)
    compare("loss", loss)
    gradients(model)
    compare("accuracy", accuracy.compute())
    x, y = torch.tensor(numbers(20)), torch.tensor(numbers(20))
    compare("pearson", torchmetrics.functional.pearson_corrcoef(x, y))
    compare("auroc", torchmetrics.functional.auroc(x.sigmoid(), (y > 0).long(), task="binary"))

with stage("saves, loads"):
    save_file(
        {name: each.contiguous() for name, each in model.state_dict().items()}, f"{folder()}/w.safetensors"
    )
    model.load_state_dict(load_file(f"{folder()}/w.safetensors"))
    compare("output of the loaded model", model(torch.ones(1, 6)))
