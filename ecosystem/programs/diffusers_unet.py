"""DDPM with a small UNet of diffusers: a training loop, then a sample denoised through every step. Both
engines get the same noise: `randn_tensor`, by which schedulers draw it, is replaced."""

from stages import compare, folder, gradients, numbers, same_weights, stage, whole

with stage("imports"):
    import torch
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
    from diffusers.pipelines.ddpm import pipeline_ddpm
    from diffusers.schedulers import scheduling_ddpm


def same_noise(shape, **options):
    return torch.tensor(numbers(*shape))


pipeline_ddpm.randn_tensor = scheduling_ddpm.randn_tensor = same_noise

with stage("builds"):
    model = UNet2DModel(sample_size=8, in_channels=1, out_channels=1, layers_per_block=1,
                        block_out_channels=(8, 16), norm_num_groups=4,
                        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8)  # fmt: skip
    same_weights(torch, model)
    scheduler = DDPMScheduler(num_train_timesteps=20)

with stage("trains"):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images = torch.tensor(numbers(2, 1, 8, 8))
    for step in range(4):
        noise, times = torch.tensor(numbers(2, 1, 8, 8)), torch.tensor(whole(0, 20, 2))
        predicted = model(scheduler.add_noise(images, noise, times), times, return_dict=False)[0]
        loss = torch.nn.functional.mse_loss(predicted, noise)
        loss.backward()
        compare(f"loss {step}", loss)
        if step == 0:
            compare("prediction", predicted)
            gradients(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

with stage("generates"):
    sample = torch.tensor(numbers(1, 1, 8, 8))
    scheduler.set_timesteps(20)
    with torch.no_grad():
        for time in scheduler.timesteps:
            sample = scheduler.step(model(sample, time).sample, time, sample).prev_sample
    compare("sample", sample)
    made = DDPMPipeline(model, scheduler)(num_inference_steps=20, output_type="np", batch_size=2).images
    compare("images of the pipeline", made)

with stage("saves, loads"):
    model.save_pretrained(folder())
    with torch.no_grad():
        loaded = UNet2DModel.from_pretrained(folder(), low_cpu_mem_usage=False)
        compare("prediction of the loaded model", loaded(images, torch.tensor([3, 7])).sample)
