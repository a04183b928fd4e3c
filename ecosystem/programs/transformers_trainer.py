"""transformers as most people use it: a tokenizer and a model from a folder, `Trainer` with evaluation and
checkpoints, training that goes on from one, and `pipeline("text-generation")`."""

from stages import compare, folder, same_weights, stage

WORDS = "the cat sat on a mat and dog ran to hat big red".split()  # noqa: SIM905

with stage("imports"):
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        GPT2Config,
        GPT2LMHeadModel,
        PreTrainedTokenizerFast,
        Trainer,
        TrainingArguments,
        pipeline,
    )

with stage("builds"):
    vocabulary = {"<unk>": 0, "<eos>": 1, **{word: i + 2 for i, word in enumerate(WORDS)}}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", eos_token="<eos>", pad_token="<eos>"
    )
    config = GPT2Config(
        vocab_size=16, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1,
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    same_weights(torch, model, 0.3)


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        ids = torch.tensor([(i + j) % 13 + 2 for j in range(8)])
        return {"input_ids": ids, "labels": ids, "attention_mask": torch.ones(8, dtype=torch.long)}


with stage("trains"):
    settings = TrainingArguments(
        output_dir=f"{folder()}/run",
        per_device_train_batch_size=8,  # all of them: whose shuffle it is does not matter
        per_device_eval_batch_size=4,
        max_steps=4,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        logging_steps=2,
        report_to=[],
        learning_rate=1e-2,
        use_cpu=True,
    )
    data = {"train_dataset": Sentences(), "eval_dataset": Sentences(), "processing_class": tokenizer}
    trainer = Trainer(model=model, args=settings, **data)
    trainer.train()
    compare("loss", trainer.evaluate()["eval_loss"])

with stage("generates"):
    write = pipeline("text-generation", model=model, tokenizer=tokenizer, device="cpu")
    written = write("the cat sat", max_new_tokens=6, do_sample=False, return_full_text=False)
    compare("continuation", [vocabulary[word] for word in written[0]["generated_text"].split()], "tokens")

with stage("saves, loads"):
    half_way = f"{folder()}/run/checkpoint-2"
    again = Trainer(model=AutoModelForCausalLM.from_pretrained(half_way), args=settings, **data)
    again.train(resume_from_checkpoint=half_way)
    compare("loss after going on", again.evaluate()["eval_loss"])
    again.save_model(f"{folder()}/model")
    loaded = AutoModelForCausalLM.from_pretrained(f"{folder()}/model")
    asked = AutoTokenizer.from_pretrained(f"{folder()}/model")("big red dog", return_tensors="pt")
    compare("logits", loaded(**asked).logits)
