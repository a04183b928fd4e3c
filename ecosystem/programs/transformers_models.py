"""Build a language model from a config, train it, save it, load it, and let it write."""

import sys

from stages import compare, folder, gradients, same_weights, stage, whole

with stage("imports"):
    import torch
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
        logging,
    )

    logging.set_verbosity_error()
    logging.disable_progress_bar()

KINDS = {
    "gpt2": (
        GPT2LMHeadModel,
        GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=64, resid_pdrop=0, embd_pdrop=0,
                   attn_pdrop=0, bos_token_id=1, eos_token_id=None, pad_token_id=0),
    ),
    "llama": (
        LlamaForCausalLM,
        LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, vocab_size=64, max_position_embeddings=64, bos_token_id=1,
                    eos_token_id=None, pad_token_id=0),
    ),
    "bert": (
        BertForMaskedLM,
        BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                   vocab_size=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0),
    ),
}  # fmt: skip
made, config = KINDS[sys.argv[1]]

with stage("builds"):
    model = made(config)
    same_weights(torch, model)
    model.tie_weights()
    ids = torch.tensor(whole(2, 64, 2, 12))

with stage("trains"):
    output = model(input_ids=ids, labels=ids)
    compare("logits", output.logits)
    output.loss.backward()
    gradients(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(3):
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        compare(f"loss {step}", loss)

with stage("saves, loads"):
    model.eval()
    model.save_pretrained(folder())
    loaded = made.from_pretrained(folder())
    with torch.no_grad():
        compare("logits of the loaded model", loaded(input_ids=ids).logits)
        assert torch.equal(loaded(input_ids=ids).logits, model(input_ids=ids).logits)

if sys.argv[1] != "bert":
    with stage("generates"):
        compare("greedy", loaded.generate(ids[:, :5], max_new_tokens=4, do_sample=False), "tokens")
