"""Writes test/fixtures/gpt2-tokenizer: a small byte-level vocabulary as vocab.json and merges.txt, and what transformers encodes with it.

    python test/tools/dump_gpt2_tokenizer.py

Needs transformers and tokenizers. `golden.json` has the texts, and by case the other files of the folder and the token ids, with special tokens.
"""
import json
import tempfile
from pathlib import Path

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

OUT = Path(__file__).resolve().parent.parent / "fixtures" / "gpt2-tokenizer"
TEXT = [
    "The model is small, and the small model is tested: it's what they've measured.",
    "the tokens of the text are those of the table, and the table is the model's",
]
SPECIAL = ["<s>", "<pad>", "</s>", "<|endoftext|>"]
TEXTS = ["", "the model", " the  models of 1234 tables!\n\nIt's é 日本 \U0001f600", "a</s>b<|endoftext|> c", "  <pad>x <s> y", "<extra> they've"]
END = dict(content="</s>", lstrip=False, normalized=True, rstrip=False, single_word=False)
CASES = {
    "opt": {
        "config.json": dict(model_type="opt"),
        "tokenizer_config.json": dict(tokenizer_class="GPT2Tokenizer", add_bos_token=True, add_prefix_space=False, bos_token=END, eos_token=END, unk_token=END, pad_token=dict(END, content="<pad>")),
        "special_tokens_map.json": dict(bos_token=END, eos_token=END, unk_token=END, pad_token="<pad>"),
    },
    "gpt2": {"config.json": dict(model_type="gpt2")},
    "prefix": {
        "config.json": dict(model_type="gpt2"),
        "tokenizer_config.json": dict(tokenizer_class="GPT2Tokenizer", add_prefix_space=True),
        "added_tokens.json": {"<extra>": 319},
    },
}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, special_tokens=SPECIAL, show_progress=False))
    tokenizer.model.save(str(OUT))
    cases = {}
    for name, files in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            for file in ("vocab.json", "merges.txt"):
                (Path(folder) / file).write_text((OUT / file).read_text())
            for file, content in files.items():
                (Path(folder) / file).write_text(json.dumps(content))
            made = AutoTokenizer.from_pretrained(folder)
            ids = [made(text)["input_ids"] for text in TEXTS]
            cases[name] = dict(files=files, ids=ids, decoded=[made.decode(each, skip_special_tokens=True) for each in ids])
    (OUT / "golden.json").write_text(json.dumps(dict(transformers=transformers.__version__, texts=TEXTS, cases=cases), indent=1) + "\n")
    print({name: case["ids"] for name, case in cases.items()})


if __name__ == "__main__":
    main()
