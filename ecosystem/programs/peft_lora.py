"""LoRA adapters of PEFT on a small GPT-2, trained a few steps."""

from stages import compare, folder, gradients, same_weights, stage, whole

with stage("imports"):
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

with stage("builds"):
    config = GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=64, n_positions=32, resid_pdrop=0,
                        embd_pdrop=0, attn_pdrop=0, eos_token_id=None)  # fmt: skip
    base = GPT2LMHeadModel(config)
    same_weights(torch, base)
    model = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"]))
    same_weights(torch, model)
    ids = torch.tensor(whole(2, 64, 2, 10))

with stage("trains"):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(3):
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        compare(f"loss {step}", loss)
        if step == 0:
            gradients(model)
        optimizer.step()

with stage("saves, loads"):
    model.save_pretrained(folder())
    fresh = GPT2LMHeadModel(config)
    fresh.load_state_dict(base.state_dict(), strict=False)
    compare("merged", model.merge_and_unload()(input_ids=ids).logits)
    assert PeftModel.from_pretrained(fresh, folder()) is not None
