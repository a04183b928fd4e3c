"""A Trainer of Lightning on the CPU, for two epochs."""

from stages import compare, folder, numbers, same_weights, stage

with stage("imports"):
    import lightning
    import torch
    from torch.utils.data import DataLoader, TensorDataset


class Fit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


with stage("builds"):
    model = Fit()
    same_weights(torch, model)
    data = TensorDataset(torch.tensor(numbers(16, 4)), torch.tensor(numbers(16, 1)))

with stage("trains"):
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=folder(),
    )  # fmt: skip
    trainer.fit(model, DataLoader(data, batch_size=8))
    compare("weight", model.layer.weight)

with stage("saves, loads"):
    trainer.save_checkpoint(f"{folder()}/fit.ckpt")
    loaded = Fit.load_from_checkpoint(f"{folder()}/fit.ckpt")
    compare("weight of the loaded model", loaded.layer.weight)
