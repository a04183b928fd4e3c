"""A small UNet of diffusers: a step of training, and a few of DDPM's."""

from stages import compare, folder, gradients, numbers, same_weights, stage

with stage("imports"):
    import torch
    from diffusers import DDPMScheduler, UNet2DModel

with stage("builds"):
    model = UNet2DModel(sample_size=8, in_channels=1, out_channels=1, layers_per_block=1,
                        block_out_channels=(8, 16), norm_num_groups=4,
                        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8)  # fmt: skip
    same_weights(torch, model)
    scheduler = DDPMScheduler(num_train_timesteps=10)

with stage("trains"):
    clean, noise = torch.tensor(numbers(2, 1, 8, 8)), torch.tensor(numbers(2, 1, 8, 8))
    noisy = scheduler.add_noise(clean, noise, torch.tensor([3, 7]))
    predicted = model(noisy, torch.tensor([3, 7])).sample
    compare("prediction", predicted)
    torch.nn.functional.mse_loss(predicted, noise).backward()
    gradients(model)

with stage("generates"):
    sample = torch.tensor(numbers(1, 1, 8, 8))
    scheduler.set_timesteps(2)
    with torch.no_grad():
        step = scheduler.step(model(sample, 0).sample, 0, sample)
    compare("sample", step.pred_original_sample)

with stage("saves, loads"):
    model.save_pretrained(folder())
    with torch.no_grad():
        loaded = UNet2DModel.from_pretrained(folder(), low_cpu_mem_usage=False)
        compare("prediction of the loaded model", loaded(noisy, torch.tensor([3, 7])).sample)
