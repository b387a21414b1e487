"""Drives a chat listener with the official Python client: openai_client.py BASE_URL MODEL. Prints what passed; fails on the first thing that is wrong."""

import sys

import openai
from pydantic import BaseModel


class Fox(BaseModel):
    brave: bool


client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
common = {"model": sys.argv[2], "messages": [{"role": "user", "content": "Tell me a short story about a fox."}], "temperature": 0}
parameters = {"type": "object", "properties": {"far": {"type": "boolean"}}, "required": ["far"], "additionalProperties": False}
tools = [{"type": "function", "function": {"name": "run", "parameters": parameters}}]

whole = client.chat.completions.create(**common, max_tokens=12)
text = whole.choices[0].message.content
assert text and whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 12, whole
print("plain")

stream = client.chat.completions.create(**common, max_tokens=12, stream=True, stream_options={"include_usage": True})
chunks = list(stream)
assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text, chunks
assert chunks[-1].usage.completion_tokens == 12, chunks[-1]
print("stream")

with client.chat.completions.stream(**common, max_tokens=12) as helper:
    assert "".join(event.delta for event in helper if event.type == "content.delta") == text
    assert helper.current_completion_snapshot.choices[0].message.content == text
print("stream helper")

call = client.chat.completions.create(**common, max_tokens=200, tools=tools, tool_choice="required", parallel_tool_calls=False).choices[0]
assert call.finish_reason == "tool_calls" and call.message.tool_calls[0].function.name == "run", call
assert "".join(call.message.tool_calls[0].function.arguments.split()) in ('{"far":true}', '{"far":false}'), call
print("tools")

parsed = client.chat.completions.parse(**common, max_tokens=200, response_format=Fox).choices[0]
assert isinstance(parsed.message.parsed, Fox), parsed
print("parse")

content = client.chat.completions.create(**common, max_tokens=3, logprobs=True, top_logprobs=2).choices[0].logprobs.content
assert len(content) == 3 and all(len(one.top_logprobs) == 2 and one.logprob <= 0 for one in content), content
assert all(one.top_logprobs[0].token == one.token for one in content), content
print("logprobs")

choices = client.chat.completions.create(**{**common, "temperature": 1}, max_tokens=8, n=3, seed=5).choices
assert [choice.index for choice in choices] == [0, 1, 2] and len({choice.message.content for choice in choices}) > 1, choices
print("n=3")

legacy = client.completions.create(model=sys.argv[2], prompt=["Once upon a time", "The dog"], max_tokens=4, temperature=0, logprobs=1, echo=False)
for choice in legacy.choices:
    count = len(choice.logprobs.tokens)
    assert count == 4 if choice.finish_reason == "length" else 1 <= count < 4, legacy
    assert len(choice.logprobs.token_logprobs) == len(choice.logprobs.top_logprobs) == count, legacy
print("completions")

for expected, code, change in [
    (openai.NotFoundError, "model_not_found", {"model": "gpt-4"}),
    (openai.BadRequestError, "invalid_value", {"temperature": 9}),
    (openai.BadRequestError, "context_length_exceeded", {"max_tokens": 10**6}),
]:
    try:
        client.chat.completions.create(**{**common, **change})
        raise SystemExit(f"{change} was accepted")
    except expected as error:
        assert error.code == code and error.type == "invalid_request_error" and error.request_id, error
print("errors")
