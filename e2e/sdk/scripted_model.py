"""A model that says what it is told to: an HTTP server that answers as OpenAI's API does."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ScriptedModel:
    """Answers each request with the next of its answers, and keeps what it was asked.

    An answer is a text, or a list of pairs: the name of a tool and the text of its arguments. The
    last one is given again and again.
    """

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.asked: list[dict] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers['content-length'])
                model.asked.append(json.loads(self.rfile.read(length)))
                content = json.dumps(_completion(model.next())).encode()
                self.send_response(200)
                self.send_header('content-type', 'application/json')
                self.send_header('content-length', str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def next(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def camel(self):
        """The model as CAMEL takes it."""
        from camel.models import ModelFactory
        from camel.types import ModelPlatformType
        from camel.utils.token_counting import BaseTokenCounter

        class Counter(BaseTokenCounter):
            """CAMEL's own would be fetched from the network."""

            def count_tokens_from_messages(self, messages) -> int:
                return len(messages)

            def encode(self, text) -> list[int]:
                return [0]

            def decode(self, token_ids) -> str:
                return ''

        return ModelFactory.create(
            model_platform=ModelPlatformType.OPENAI_COMPATIBLE_MODEL,
            model_type='scripted',
            url=f'http://127.0.0.1:{self._server.server_port}/v1',
            api_key='none',
            token_counter=Counter(),
        )

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _completion(answer) -> dict:
    message = {'role': 'assistant', 'content': answer if isinstance(answer, str) else ''}
    if not isinstance(answer, str):
        message['tool_calls'] = [
            {'id': f'call{n}', 'type': 'function', 'function': {'name': name, 'arguments': text}}
            for n, (name, text) in enumerate(answer)
        ]
    choice = {'index': 0, 'message': message, 'finish_reason': 'stop'}
    usage = {'prompt_tokens': 1, 'completion_tokens': 1, 'total_tokens': 2}
    return {
        'id': 'answer', 'object': 'chat.completion', 'created': 1, 'model': 'scripted',
        'choices': [choice], 'usage': usage,
    }
