r"""A tool loop as most agents have it: the model asks for tools, a sandbox runs them.

    pip install ./sdk/python
    python examples/python/tool_loop.py
    #> write_file: 'written'
    #> run_command: '55\n[exit code 0]'
    #> The sum is 55.

The model here is a script, so the example needs no key. With the package `openai`, replace it by

    def ask(messages):
        chat = openai.OpenAI().chat.completions
        answer = chat.create(model=MODEL, messages=messages, tools=TOOLS)
        return answer.choices[0].message.model_dump(exclude_none=True)
"""

import json

from zareba import Sandbox, ZarebaError

TURNS_MAX = 20


def tool(name, description, **parameters):
    """The definition of a tool whose parameters are all strings."""
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


TOOLS = [
    tool("run_command", "Runs a shell command and returns its output.", command="The command."),
    tool("write_file", "Writes a text file.", path="The path.", content="The new content."),
]


def perform(sandbox, name, arguments):
    """What a tool call returns to the model. Failures are answers too."""
    try:
        if name == "run_command":
            result = sandbox.run(arguments["command"], timeout=60)
            return f"{result.output}\n[exit code {result.exit_code}]"
        if name == "write_file":
            sandbox.files.write(arguments["path"], arguments["content"])
            return "written"
        return f"there is no tool {name}"
    except (ZarebaError, KeyError) as error:
        return f"error: {error}"


def work(ask, task):
    """Lets the model work on a task in a fresh sandbox, and returns its last words."""
    messages = [{"role": "user", "content": task}]
    with Sandbox.create() as sandbox:
        for _ in range(TURNS_MAX):
            message = ask(messages)
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                function = call["function"]
                arguments = json.loads(function["arguments"])
                content = perform(sandbox, function["name"], arguments)
                print(f"{function['name']}: {content!r}")
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    return "no answer within the allowed turns"


def scripted(messages):
    """Answers as a model would: two tool calls, then a sentence with the result of the second."""
    turn = sum(message["role"] == "assistant" for message in messages)
    steps = [
        ("write_file", {"path": "sum.py", "content": "print(sum(range(11)))\n"}),
        ("run_command", {"command": "python3 sum.py"}),
    ]
    if turn < len(steps):
        name, arguments = steps[turn]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call-{turn}", "type": "function", "function": function}
        return {"role": "assistant", "tool_calls": [call]}
    number = messages[-1]["content"].splitlines()[0]
    return {"role": "assistant", "content": f"The sum is {number}."}


if __name__ == "__main__":
    print(work(scripted, "Add the numbers from 1 to 10 with a Python program."))
