"""templates/cases.jsonl: chat templates of ours with the constructs that published ones
use, and what transformers renders for several conversations.

Each line: name, template, messages, add_generation_prompt and text, or error where
Jinja2 refuses the template or the conversation."""
from common import fresh, write_lines
from transformers.utils.chat_template_utils import render_jinja_template


def said(role, content, **more):
    return {"role": role, "content": content, **more}


CALL = {"type": "function", "id": "call_1", "function": {
    "name": "tide", "arguments": {"port": "Åhus", "hours": 6, "level": 1.25, "deep": [None, True]}}}
CHATS = {
    "question": [said("user", "Ahoy")],
    "system": [said("system", " Be short. "), said("user", "How late?\n"),
               said("assistant", " <think>\nhm\n</think>\n\nLate. "), said("user", "Thanks ⛵ 'x'")],
    "parts": [said("user", [{"type": "text", "text": "Look: "}, {"type": "image", "url": "x.png"},
                            {"type": "text", "text": "a lamp"}]),
              said("assistant", "Bright.")],
    "tools": [said("user", "Tide?"), said("assistant", None, tool_calls=[CALL]),
              said("tool", "{\"metres\": 1.5}", name="tide", tool_call_id="call_1"),
              said("assistant", "1.5 m", thinking_budget=512)],
    "nothing": [],
}

# -- filters of none, unknown names, number keys, format, tojson

CHOOSING = """{% set absent = none %}{% for v in [absent, '', 0, false, [], {}, missing] -%}
{{ v | select | list }}{{ v | reject('none') | list }}{{ v | selectattr('a') | list }}\
{{ v | rejectattr('a', 'equalto', 1) | list }}{{ v | map('upper') | list }}\
{{ v | map(attribute='a') | list }}
{%- endfor %}
{{ tools | selectattr('type', 'equalto', 'function') | list | length }}\
{{ messages | selectattr('tool_calls', 'defined') | map(attribute='tool_calls') | list | length }}\
{{ (messages | first).tool_calls | default(none) | select('defined') | list }}"""
CHOOSING_ERRORS = {"select 3": "{{ 3 | select | list }}",
                   "map 3": "{{ 3 | map('upper') | list }}",
                   "list none": "{{ none | list }}", "join none": "{{ none | join }}",
                   "for none": "{% for x in none %}{% endfor %}",
                   "select unknown": "{{ none | select('nonesuch') | list }}|"
                                     "{{ [1] | select('nonesuch') | list }}"}
UNREACHED = """{% for message in messages -%}
{%- if message.arguments is defined and message.arguments is string -%}
{{ message.arguments | from_json | length }}
{%- elif message.nothing -%}{{ message is nonesuch }}{{ message | nonesuch(1, x=2) }}
{%- else -%}{{ message.role }}{%- endif -%};
{%- endfor %}{{ 'x' if true else 'y' | nonesuch }}{{ ('y' | nonesuch) if false }}"""
UNKNOWN = {
    "unknown reached": "{% if true %}{{ 1 | nonesuch }}{% endif %}",
    "unknown test reached": "{% if true %}{{ 1 is nonesuch }}{% endif %}",
    "unknown in a condition": "{% if 1 | nonesuch %}{% endif %}",
    "unknown and short cut": "{% if false and 1 | nonesuch %}a{% else %}b{% endif %}",
    "unknown at the top": "{% if true %}{% endif %}{{ missing and 1 | nonesuch }}",
    "unknown test at the top": "{{ missing and 1 is nonesuch }}",
    "unknown in a loop in an if": "{% if false %}{% for x in [1] %}{{ x | nonesuch }}"
                                  "{% endfor %}{% endif %}",
    "unknown in the list of a loop in an if": "{% if false %}{% for x in [1] | nonesuch %}"
                                              "{% endfor %}{% endif %}ok",
    "unknown in an if in a loop": "{% for x in [1] %}{% if x > 1 %}{{ x | nonesuch }}{% endif %}"
                                  "{{ x }}{% endfor %}",
    "unknown in a loop that is not run": "{% for x in [] %}{{ x | nonesuch }}{% endfor %}",
    "unknown in a macro": "{% if false %}{% macro f() %}{{ 1 | nonesuch }}{% endmacro %}"
                          "{% endif %}",
    "unknown in a set": "{% if false %}{% set x = 1 | nonesuch %}{% endif %}ok",
    "unknown in a captured set": "{% if false %}{% set x %}{{ 1 | nonesuch }}{% endset %}"
                                 "{% endif %}",
    "unknown in a generation": "{% if false %}{% generation %}{{ 1 | nonesuch }}"
                               "{% endgeneration %}{% endif %}",
    "unknown in arguments": "{{ (range(1 | nonesuch)) if false else 'ok' }}",
}
BUDGET = """{% set steps = {0: 0, 512: 128, 1024: 256, -1: 'none', 2.5: 'half'} -%}
{%- set ns = namespace(found=none) -%}
{%- for message in messages if message.thinking_budget is defined -%}
{%- for limit, every in steps.items() -%}
{%- if ns.found is none and message.thinking_budget <= limit -%}
{%- set ns.found = every -%}{%- endif -%}{%- endfor -%}
{%- endfor -%}
found {{ ns.found }}; {{ steps[512] }} {{ steps[1024.0] }} {{ steps.get(0) }} {{ steps.get(7, 'no') }}
{{ steps['512'] is defined }} {{ 512 in steps }} {{ '512' in steps }} {{ 0.0 in steps }}
{{ steps | length }} {{ steps }} {{ steps | tojson }} {{ steps.keys() | list }} {{ steps | list }}
{{ {true: 'yes', none: 'no', 1.5: 'x'} }} {{ {true: 1, false: 0, none: 2} | tojson }}
{{ {1: 'a', true: 'b', 1.0: 'c'} }} {{ {'k': 1, 'k': 2}.k }} {{ {2: 'b', 1: 'a'} | dictsort }}
{{ {1: 2} == {1.0: 2.0} }} {{ {1: 2} == {'1': 2} }} {{ dict({1: 'a'}, b=2) }}
{{ {3: 'c'}.items() | list }} {{ {3: 'c'} | items | list }} {{ {3: 'c'}.values() | list }}"""
BUDGET_ERRORS = {"key is a list": "{{ {[1]: 2} }}", "key is a mapping": "{{ {{}: 2} }}",
                 "keys of two kinds sorted": "{{ {1: 2, 'a': 3} | dictsort }}"}
FORMAT = """{{ '{}-{}'.format('a', 2) }} {{ '{1}{0}{1}'.format('x', 'y') }} {{ '{{}}{}'.format(1) }}
{{ '{name}: {n}'.format(name='lamp', n=3) }} {{ '{0[role]}|{0.role}'.format({'role': 'user'}) }}
{{ '{0[1]}'.format(['a', 'b']) }} {{ '{:>6}|{:<6}|{:^7}|{:*^7}|'.format('ab', 'cd', 'ef', 'gh') }}
{{ '{:5}|{:<5}|{:05}|{:+d}|{: d}|{:,}|{:_}'.format(42, 42, 42, 42, 42, 1234567, 1234567) }}
{{ '{:.2f} {:8.3f} {:08.2f} {:.0f} {:.3} {:.1%} {:e} {:.2E}'.format(3.14159, 2.5, -1.5, 2.5, 'abcdef', 0.256, 12345.678, 0.00012) }}
{{ '{:x} {:X} {:#x} {:b} {:#b} {:o} {:c}'.format(255, 255, 255, 5, 5, 8, 233) }}
{{ '{!r} {!s}'.format('it', 'it') }} {{ '{} {} {} {}'.format(none, true, 1.0, [1, 'a']) }}
{{ '{:{}}|'.format('x', 4) }} {{ '{:>{width}}'.format('x', width=3) }} {{ '{:é>4}'.format('灯') }}
{{ '{:g} {:g} {:.3g} {}'.format(0.00001, 123456789.0, 2.0, 1e20) }} {{ 'plain'.format() }}
{{ '{:10}|{:<10}|{:,.2f}|{:s}'.format(1.5, true, 9876543.21, 'z') }}"""
FORMAT_ERRORS = {
    "format too few": "{{ '{} {}'.format(1) }}", "format no name": "{{ '{x}'.format(1) }}",
    "format open": "{{ '{'.format(1) }}", "format close": "{{ '}'.format(1) }}",
    "format both countings": "{{ '{}{0}'.format(1) }}", "format bad code": "{{ '{:q}'.format(1) }}",
    "format number as text": "{{ '{:s}'.format(1) }}", "format text as number": "{{ '{:d}'.format('1') }}",
    "format real as whole": "{{ '{:d}'.format(1.5) }}", "format none wide": "{{ '{:>5}'.format(none) }}",
    "format list wide": "{{ '{:5}'.format([1]) }}", "format no entry": "{{ '{0[x]}'.format({}) }}",
    "format precision of whole": "{{ '{:.2}'.format(3) }}"}
JSON = """{% set v = {'ü': 'Åß ⛵ \\x7f\\u2028<&>', 'a': [1, 2.5, none, true], 'b': {}} -%}
{{ v | tojson }} {{ v | tojson(ensure_ascii=true) }} {{ v | tojson(true) }} {{ v | tojson(false) }}
{{ v | tojson(indent=2) }} {{ v | tojson(ensure_ascii=true, indent=1) }} {{ v | tojson(false, 3) }}
{{ v | tojson(separators=(',', ':')) }} {{ v | tojson(separators=[' , ', ' : '], indent=1) }}
{{ v | tojson(sort_keys=true) }} {{ {'b': 1, 'a': {'d': 1, 'c': 2}} | tojson(sort_keys=true, indent=1) }}
{{ 'é' | tojson(ensure_ascii=true) }} {{ [] | tojson(indent=2) }} {{ v | tojson(indent=0) }}
{{ messages | tojson(ensure_ascii=true) }}"""
JSON_ERRORS = {"tojson of undefined": "{{ missing | tojson }}",
               "tojson unknown option": "{{ 1 | tojson(nonesuch=true) }}",
               "tojson one separator": "{{ [1] | tojson(separators=[',']) }}"}

# -- blocks: call, filter, with, set with filters, what macros take

BLOCKS = """{% macro box(title, wide=2) -%}
[{{ title }}:{{ caller('é', n=wide) if caller else '-' }}]{{ varargs }}{{ kwargs }}
{%- endmacro -%}
{% macro item(x) %}<{{ x }}{{ caller() }}>{% endmacro -%}
{% macro two(a, n) %}{{ n }}{{ a }}{% endmacro -%}
{% set x = 'outer' -%}
{% for m in messages -%}
{% call(a, b=1, n=0) box(m.role, 3, 4, more=x) %}{{ a * n }}{{ b }}{{ m.role }}{{ loop.index }}{% set x = 2 %}{{ x }}{% endcall -%}
{% call item('p') %}{% call item('q') %}{{ x }}{% endcall %}{% endcall -%}
{% filter upper | replace('A', m.role) | trim %} aaé {{ x }} {% set inner = 1 %}{% endfilter -%}
{% with a = x, x = 'with', b = x ~ loop.index %}{{ a }}{{ x }}{{ b }}{% set x = 'in' %}{{ x }}{% endwith %}{{ x }}
{%- with %}{% set y = 1 %}{{ y }}{% endwith %}{{ y is defined }}
{%- with a, b = (1, 2) %}{{ a }}{{ b }}{% if loop.last %}{% break %}{% endif %}{% endwith %};
{%- set role | upper | indent(1, true) %}{{ m.role }}
b{% endset %}{{ role }}{% set n | length %}abc{% endset %}{{ n + 1 }}
{% endfor -%}
{% for i in [1, 2, 3] %}a{% filter upper %}b{% if i == 2 %}{% continue %}{% endif %}c{% endfilter %}
{%- set lost %}d{% if i == 3 %}{% break %}{% endif %}{% endset %}{{ lost }}{% endfor %}{{ lost is defined }}
{%- set ns = namespace() %}{% set ns.body %}in {{ x }}{% endset %}{{ ns.body }}{% set ns.body | upper %}a{% endset %}{{ ns.body }}
{%- for i in [1, 2] %}{% macro seen() %}{{ i }}{{ x }}{% set x = 5 %}{% endmacro %}{% set x = 'loop' %}{{ seen() }}{% endfor %}
{{- box('t', title_of=1) }}{{ box(wide=1, title=2) }}{{ box() }}{{ box('a', caller=two) }}
{%- filter title %}{% call item('r') %}s{% endcall %}{% endfilter %}{% call(a, n) box('x') %}{{ caller is defined }}{{ n }}{% endcall %}"""
MACRO = "{% macro f(a) %}{{ a }}{% endmacro %}{% macro g() %}{{ caller() }}{% endmacro %}"
BLOCK_ERRORS = {name: MACRO + template for name, template in {
    "call without caller": "{% call f(1) %}{% endcall %}", "no caller": "{{ g() }}",
    "too many arguments": "{{ f(1, 2) }}", "unknown argument": "{{ f(b=1) }}",
    "argument given twice": "{{ f(1, a=2) }}", "call of no macro": "{% call range(3) %}{% endcall %}",
    "call of a dict": "{% call dict(a=1) %}{% endcall %}", "call of no call": "{% call f %}{% endcall %}",
    "break in a call": "{% for i in [1] %}{% call g() %}{% break %}{% endcall %}{% endfor %}",
    "caller without a value": "{% macro h(caller) %}{{ caller }}{% endmacro %}",
    "caller not read": "{% macro h(caller) %}a{% endmacro %}{{ h() }}",
    "caller with a value": "{% macro h(caller=2) %}{{ caller }}{% endmacro %}{{ h() }}{{ h(3) }}",
    "caller in a call": "{% macro h() %}{% call g() %}{{ caller() }}{% endcall %}{% endmacro %}"
                        "{% call h() %}a{% endcall %}",
    "filter that makes a number": "{% filter length %}abc{% endfilter %}",
    "filter without a name": "{% filter %}a{% endfilter %}",
    "filter with a test": "{% filter upper is string %}a{% endfilter %}",
    "unknown filter block": "{% if false %}{% filter nonesuch %}a{% endfilter %}{% endif %}",
    "unknown filter of a set": "{% if false %}{% set a | nonesuch %}{% endset %}{% endif %}",
    "unknown in a with": "{% if false %}{% with a = 1 | nonesuch %}{% endwith %}{% endif %}ok",
    "unknown in the body of a with": "{% if false %}{% with %}{{ 1 | nonesuch }}{% endwith %}{% endif %}",
    "unknown in a call": "{% if false %}{% call g(1 | nonesuch) %}{% endcall %}{% endif %}ok",
    "with without a value": "{% with a %}{% endwith %}", "with two and one": "{% with a, b = 1 %}{% endwith %}",
    "filter not ended": "{% filter upper %}a{% endwith %}"}.items()}

# -- whole templates of ours, in the manner of published ones

AGENT = """{%- macro text_of(content) -%}
{%- if content is none -%}
{%- elif content is string -%}{{ content | trim }}
{%- else -%}
{%- for part in content -%}
{%- if part.type == 'text' -%}{{ part.text }}{%- else -%}<{{ part.type | upper }}>{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{{- bos_token -}}
{%- if tools is not none and tools | length > 0 -%}
# Tools
{% for tool in tools %}{{ tool | tojson(indent=4) }}{% endfor %}
{%- endif -%}
{%- set images = messages | selectattr('content', 'iterable') | list | length -%}
{%- for message in messages -%}
{%- if loop.first and message.role != 'system' -%}<system>Be of help.</system>
{% endif -%}
{%- set body = text_of(message.content) -%}
{%- if message.role == 'assistant' and message.tool_calls is defined and message.tool_calls -%}
{%- for call in message.tool_calls -%}
<call {{ '{}#{}'.format(call.function.name, loop.index) }}>
{%- if call.function.arguments is string -%}{{ call.function.arguments }}
{%- else -%}{{ call.function.arguments | tojson(ensure_ascii=true, separators=(',', ':')) }}
{%- endif -%}</call>
{%- endfor -%}
{%- elif message.role == 'tool' -%}
{%- if message.raw is defined -%}{{ message.raw | from_json }}
{%- else -%}<result of="{{ message.name | default('?') }}">{{ body }}</result>{%- endif -%}
{%- else -%}
<{{ message.role }}>{{ body.split('</think>')[-1].lstrip('\\n') }}</{{ message.role }}>
{%- endif -%}
{%- endfor -%}
{{- images if images is odd }}
{%- if add_generation_prompt %}<assistant>{% endif -%}"""
THINKING = """{%- set ns = namespace(last=-1, budget=none) -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages -%}
{{- '<|' + message.role + '|>\\n' -}}
{%- set content = message.content if message.content is string else '' -%}
{%- if '</think>' in content and loop.index0 < ns.last -%}
{%- set content = content.split('</think>') | last | trim -%}
{%- endif -%}
{%- generation -%}{{- content -}}{%- endgeneration -%}
{{- '<|end|>' if not loop.last else eos_token -}}
{%- else -%}
nobody spoke
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}<think></think>{%- endif -%}
{%- endif -%}"""
STRICT = """{% if not messages %}{{ raise_exception('no messages') }}{% endif %}\
{% for m in messages %}{% if m['role'] not in ['system', 'user', 'assistant'] %}\
{{ raise_exception('role ' ~ m['role'] ~ ' is unknown') }}{% endif %}\
{% if m['content'] is not string %}{{ raise_exception('text only') }}{% endif %}\
{{ '### ' ~ {'system': 'System', 'user': 'Human', 'assistant': 'Robot'}[m['role']] ~ ':\\n' }}\
{{ m['content'].strip() | replace('\\n', '\\n    ') }}{{ '\\n\\n' if not loop.last }}{% endfor %}\
{{ '\\n\\n### Robot:\\n' if add_generation_prompt }}"""

WHOLE = {"choosing": CHOOSING, "unreached": UNREACHED, "budget": BUDGET, "format": FORMAT,
         "json": JSON, "agent": AGENT, "thinking": THINKING, "strict": STRICT}
BEYOND = {"infinite numbers": "{% set x = 1e308 * (9 + messages | length) %}{{ '{:.3}|{:8.2f}|{:+}|{:05}|{:.1%}|{:G}|{:e}'"
                              ".format(x, -x, x, x, x, x, x) }} {{ '{:.2}|{:f}|{:+}'.format("
                              "x - x, x - x, x - x) }} {{ x }} {{ -x }}"}
SMALL = BEYOND | CHOOSING_ERRORS | UNKNOWN | BUDGET_ERRORS | FORMAT_ERRORS | JSON_ERRORS | BLOCK_ERRORS


def rendered(name, template, messages, ask):
    row = {"name": name, "template": template, "messages": messages, "add_generation_prompt": ask}
    try:
        texts, spans = render_jinja_template(
            conversations=[messages], chat_template=template, add_generation_prompt=ask,
            return_assistant_tokens_mask="endgeneration" in template, tools=None, documents=None,
            bos_token="<s>", eos_token="</s>")
        return row | {"text": texts[0], "spans": [list(s) for s in spans[0]] if spans else []}
    except Exception as error:  # noqa: BLE001
        return row | {"error": f"{type(error).__name__}: {error}"}


def make(out):
    rows = [rendered(name, template, messages, ask) for name, template in WHOLE.items()
            for messages in CHATS.values() for ask in (False, True)]
    rows += [rendered("reasoning", "{{ messages }}", [
        said("user", "a"), said("assistant", "b", reasoning="c"),
        {"thinking": None, "reasoning": "d", "role": "assistant", "reasoning_content": None},
        said("assistant", "e", thinking="f", reasoning_content="g")], False)]
    rows += [rendered("blocks", BLOCKS, CHATS[chat], False) for chat in ("system", "nothing")]
    rows += [rendered(name, template, CHATS["question"], False)
             for name, template in SMALL.items()]
    write_lines(fresh(out, "templates") / "cases.jsonl", rows)
    wrong = [r for r in rows if "error" in r]
    print(f"  {len(rows)} cases, {len(wrong)} of them refused")
