#!/usr/bin/env python3
"""Writes chat_cases.jsonl: templates and messages with what Hugging Face's
transformers renders for them (pip install transformers jinja2).

Each line: template, messages, add_generation_prompt, and text, spans (character
ranges of generation blocks, [] without any) or error (the template failed).
"""
import json
import sys

import transformers
from transformers.utils.chat_template_utils import render_jinja_template

CHATS = [
    [{"role": "user", "content": "Hi"}],
    [{"role": "system", "content": " Be brief. "},
     {"role": "user", "content": "2 + 2?\n"},
     {"role": "assistant", "content": "  4 "},
     {"role": "user", "content": "Thanks, \u00e9t\u00e9 \U0001f600 <b>'x'</b>"}],
    [{"role": "user", "content": "a"},
     {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb"},
     {"role": "user", "content": "c"},
     {"role": "assistant", "content": "d"}],
    [{"role": "assistant", "content": "I begin"},
     {"role": "assistant", "content": "again"}],
    [{"role": "user", "content": [{"type": "text", "text": "part one "},
                                  {"type": "text", "text": "part two"}]}],
    [{"role": "user", "content": "weather?"},
     {"role": "assistant", "content": "", "tool_calls": [
         {"type": "function", "function": {
             "name": "weather",
             "arguments": {"city": "K\u00f6ln", "days": 3, "f": 1.5,
                           "deep": {"b": [1, None, True], "a": {}}}}}]},
     {"role": "tool", "content": "rain", "name": "weather"},
     {"role": "assistant", "content": "Take a coat."}],
    [],
]

TEMPLATES = {
    "chatml": """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    "header": """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{#- the system message stands first #}
{{- "<|head|>system<|/head|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- system_message }}
{{- "<|eot|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|/head|>\\n\\n'+ message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|head|>assistant<|/head|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|head|>ipython<|/head|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\\n\\n' }}
{%- endif %}
""",
    "thinking": """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "alternating": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}""",
    "parts": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {{ '<start>' + message['role'] + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start>model\\n' }}
{%- endif -%}
""",
    "generation": """{% for m in messages %}
    {% if m.role == 'assistant' %}
<a>{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}

    {% else %}
<{{ m.role[0] }}>{{ m.content }}
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}<a>{% endif %}
""",
    "macros": """{%- macro show(value, depth=0) -%}
{%- if value is mapping -%}
{%- for k, v in value.items() %}{{ '  ' * depth }}{{ k }}: {{ show(v, depth + 1) }};{% endfor -%}
{%- elif value is sequence and value is not string -%}
[{% for v in value %}{{ show(v) }}{% if not loop.last %}, {% endif %}{% endfor %}]
{%- else -%}
{{ value }}
{%- endif -%}
{%- endmacro -%}
{% for message in messages %}
{{ loop.index }}/{{ loop.length }} {{ loop.revindex }} {{ show(message) }}
{% else %}
nothing
{% endfor %}""",
    "filters": """{% for m in messages if m.content is string and m.content %}
{{ m.content | upper | replace("A", "_") }}|{{ m.content | lower | capitalize }}|{{ m.content.title() }}|{{ m.content | length }}|{{ m.content[:3] }}|{{ m.content[-2:] }}|{{ m.content[::-1] }}|{{ m.content[0] }}|
{%- set words = m.content.split() %}
{{ words | join('+') }}|{{ words | first }}|{{ words | last | default('none', true) }}|{{ words | reverse | list }}|{{ words|length > 1 and 'many' or 'one' }}
{% endfor %}
{{ messages | map(attribute='role') | list }}{{ messages | map(attribute='role') | unique | join(',') }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ (messages | rejectattr('role', '==', 'user') | map(attribute='role') | list) | tojson }}
{{ messages | tojson(indent=2) }}
{{ {'a': 1, 'b': [1.0, 2.5e20, none, true], "c": 'it\\'s'} }}{{ [1, 'x', 'it\\'s'] }}
""",
    "arithmetic": """{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 2 ** 10 }} {{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 1.5 + 1 }} {{ 10 ~ 'x' ~ 1.0 }} {{ 'ab' * 3 }} {{ 1 == 1.0 }} {{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ not 1 == 2 }} {{ 'a' in 'cat' and 'dog' not in ['cat'] }} {{ none }} {{ missing }} {{ missing is defined }} {{ true and 1 }} {{ [] or 'empty' }} {{ 5 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }} {{ range(3) | list }} {{ range(1, 10, 4) | sum }} {{ [3, 1, 2] | sort | join }} {{ [3, 1, 2] | max }} {{ '%s' }} {{ 'x' if false }} {{ 'x' if messages else 'y' }} {{ -2 | abs }} {{ "3" | int + 1 }} {{ "3.5" | float }} {{ 1.0 | string }} {{ 2.567 | round(2) }}""",
    "white space": """  {% if true %}  
    kept {#- gone -#}   
   joined
  {%- if true -%}  tight  {%- endif -%}
  {%+ if true %}plus{%+ endif %}
  {{- ' a' -}}  
  b
    {# comment line #}
  {% set x %}captured {{ 1 }}{% endset %}
{{ x | trim }}
  {% endif %}  
end
""",
    "loops": """{% for m in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{% if loop.index == 4 %}{% break %}{% endif %}{{ loop.index0 }}{{ m.role }}{{ loop.previtem.role if loop.previtem is defined }}{{ (loop.nextitem or {}).role }}{{ ',' if not loop.last }}{% endfor %}{% set a, b = 1, 'two' %}{{ a }}{{ b }}{% for k, v in {'x': 1, 'y': 2}.items() %}{{ k }}={{ v }} {% endfor %}{% for a in [1, 2] %}{% set b = a %}{% for c in 'xy' %}{{ a }}{{ c }}{{ loop.first }}{% endfor %}{% endfor %}{{ b }}""",
    "strings": """{{ "a\\tb\\u00e9\\x41\\\\n" }}{{ 'con' 'cat' }}{{ "x,y,,z".split(",") }}{{ "x,y,,z".split(",", 1) }}{{ "  x y ".split() }}{{ "aXbX".replace("X", "-", 1) }}{{ "abc".find("c") }}{{ "abc".find("z") }}{{ "banana".count("an") }}{{ ", ".join(["a", "b"]) }}{{ "a\\nb\\n".splitlines() }}{{ "##x#".strip("#") }}{{ "xxabxx".lstrip("x") }}{{ "abc".startswith(("b", "a")) }}{{ "Q" | indent(2, true) }}{{ "a\\n\\nb" | indent }}{{ ("a" "b")[1] }}{{ 'é' | length }}{{ 'ÀÉ'.lower() }}{{ "it's a-b c".title() }}{{ "y" | default("z") }}{{ '' | default('z', true) }}{{ '  t '|trim }}{{ '"q"' | tojson }}{{ "</s>\\u2028" | tojson }}{{ {'k': 'v'}['k'] }}{{ {'k': 'v'}.get('q', 'absent') }}{{ {'k': 'v'}.k }}{{ {'k': 1} | length }}{{ {'b': 1, 'a': 2} | dictsort }}{{ {'b': 1} | items | list }}""",
    "undefined attribute": """{{ messages[0].name.first }}""",
    "undefined sum": """{{ 'a' + missing }}""",
    "wrong types": """{{ 'a' + 1 }}""",
    "raises": """{{ raise_exception('no') }}""",
    "default tokens": """{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] if m['content'] is string else m['content'] | map(attribute='text') | join }}{{ eos_token if m.role == 'assistant' }}
{% endfor %}""",
}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "chat_cases.jsonl"
    rows = []
    for name, template in TEMPLATES.items():
        for messages in CHATS:
            for prompt in (False, True):
                row = {"name": name, "template": template,
                       "messages": messages, "add_generation_prompt": prompt}
                try:
                    texts, spans = render_jinja_template(
                        conversations=[messages], chat_template=template,
                        add_generation_prompt=prompt,
                        return_assistant_tokens_mask="endgeneration" in template,
                        tools=None, documents=None,
                        bos_token="<s>", eos_token="</s>")
                    row["text"] = texts[0]
                    row["spans"] = spans[0] if spans else []
                except Exception as error:  # noqa: BLE001
                    row["error"] = f"{type(error).__name__}: {error}"
                rows.append(row)
    with open(out, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=True) + "\n")
    print(f"{len(rows)} rows by transformers {transformers.__version__}",
          file=sys.stderr)


main()
