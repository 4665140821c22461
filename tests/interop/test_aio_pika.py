"""aio-pika: many tasks at once, its RPC and worker patterns, and a connection that comes back by itself."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.patterns import RPC, Master
from yarl import URL

Named = Callable[[str], str]
PATIENCE_SECONDS = 15


def run(work: Coroutine[Any, Any, None]) -> None:
    async def patient() -> None:
        await asyncio.wait_for(work, PATIENCE_SECONDS)

    asyncio.run(patient())


def test_a_thousand_confirmed_at_once(amqp_url: str, named: Named) -> None:
    """Ten channels of one connection publish, five workers of another take, some of it twice."""

    async def work() -> None:
        queue_name = named("queue")
        async with await aio_pika.connect(amqp_url) as out, await aio_pika.connect(amqp_url) as back:
            channels = [await out.channel() for _ in range(10)]
            await channels[0].declare_queue(queue_name, durable=True)

            async def publish(number: int) -> None:
                message = aio_pika.Message(b"%d" % number, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                await channels[number % 10].default_exchange.publish(message, queue_name)

            done: Counter[int] = Counter()
            refused: set[int] = set()
            all_done = asyncio.Event()

            async def take(message: AbstractIncomingMessage) -> None:
                number = int(message.body)
                if number % 10 == 0 and not message.redelivered:
                    refused.add(number)
                    await message.nack(requeue=True)
                    return
                await message.ack()
                done[number] += 1
                if done.total() == 1000:
                    all_done.set()

            for _ in range(5):
                channel = await back.channel()
                await channel.set_qos(prefetch_count=20)
                await (await channel.get_queue(queue_name)).consume(take)
            await asyncio.gather(*(publish(number) for number in range(1000)))
            await all_done.wait()
            assert done == Counter(range(1000)) and len(refused) == 100
            queue = await channels[0].get_queue(queue_name)
            await queue.delete(if_unused=False)

    run(work())


def test_functions_are_called_over_the_broker(amqp_url: str, named: Named) -> None:
    async def work() -> None:
        async with await aio_pika.connect(amqp_url) as connection, await aio_pika.connect(amqp_url) as other:
            server = await RPC.create(await connection.channel())
            client = await RPC.create(await other.channel())

            async def divide(x: int, y: int) -> float:
                return x / y

            await server.register(named("divide"), divide, auto_delete=True)
            results = await asyncio.gather(*(client.call(named("divide"), {"x": n, "y": 2}) for n in range(50)))
            assert results == [n / 2 for n in range(50)]
            with pytest.raises(ZeroDivisionError):
                await client.call(named("divide"), {"x": 1, "y": 0})
            await client.close()
            await server.close()

    run(work())


def test_a_master_and_its_workers(amqp_url: str, named: Named) -> None:
    async def work() -> None:
        async with await aio_pika.connect(amqp_url) as connection:
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=10)
            master = Master(channel)
            seen: list[int] = []
            finished = asyncio.Event()

            async def task(*, number: int) -> None:
                seen.append(number)
                if len(seen) == 40:
                    finished.set()

            workers = [await master.create_worker(named("tasks"), task, auto_delete=True) for _ in range(4)]
            for number in range(40):
                await master.create_task(named("tasks"), {"number": number})
            await finished.wait()
            assert sorted(seen) == list(range(40))
            for worker in workers:
                await worker.close()

    run(work())


def test_headers_decide_where_a_message_goes(amqp_url: str, named: Named) -> None:
    async def work() -> None:
        async with await aio_pika.connect(amqp_url) as connection:
            channel = await connection.channel()
            exchange = await channel.declare_exchange(named("headers"), aio_pika.ExchangeType.HEADERS, auto_delete=True)
            pdf = await channel.declare_queue(exclusive=True)
            any_of = await channel.declare_queue(exclusive=True)
            await pdf.bind(exchange, arguments={"x-match": "all", "format": "pdf", "pages": 2})
            await any_of.bind(exchange, arguments={"x-match": "any", "format": "pdf", "urgent": True})
            messages: dict[bytes, dict[str, Any]] = {
                b"both": {"format": "pdf", "pages": 2},
                b"longer": {"format": "pdf", "pages": 3},
                b"urgent": {"format": "txt", "urgent": True},
                b"neither": {"format": "txt"},
            }
            for body, headers in messages.items():
                await exchange.publish(aio_pika.Message(body, headers=headers), "", mandatory=False)
            assert await _all(pdf) == [b"both"]
            assert await _all(any_of) == [b"both", b"longer", b"urgent"]

    run(work())


async def _all(queue: aio_pika.abc.AbstractQueue) -> list[bytes]:
    found = []
    while message := await queue.get(no_ack=True, fail=False):
        found.append(message.body)
    return found


class Cable:
    """Between client and broker; can be cut."""

    def __init__(self, url: str) -> None:
        self._to = URL(url)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0

    async def lay(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return str(self._to.with_host("127.0.0.1").with_port(self._server.sockets[0].getsockname()[1]))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        assert self._to.host is not None
        there_reader, there_writer = await asyncio.open_connection(self._to.host, self._to.port)
        self._writers |= {writer, there_writer}
        for source, target in ((reader, there_writer), (there_reader, writer)):
            task = asyncio.create_task(self._carry(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # cut
        writer.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def remove(self) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def test_a_robust_connection_comes_back_with_all_it_had(amqp_url: str, named: Named) -> None:
    """The cable is cut twice under a consumer: its queue, binding and consumer are there again, and nothing is lost."""

    async def work() -> None:
        cable = Cable(amqp_url)
        url = await cable.lay()
        robust = await aio_pika.connect_robust(url, reconnect_interval=0.05)
        async with await aio_pika.connect(amqp_url) as steady:
            channel = await robust.channel()
            await channel.set_qos(prefetch_count=5)
            exchange = await channel.declare_exchange(named("exchange"), aio_pika.ExchangeType.TOPIC, durable=True)
            queue = await channel.declare_queue(named("queue"), durable=True)
            await queue.bind(exchange, "event.*")
            seen: set[int] = set()
            arrived = asyncio.Event()

            async def take(message: AbstractIncomingMessage) -> None:
                async with message.process(ignore_processed=True):
                    seen.add(int(message.body))
                arrived.set()

            await queue.consume(take)
            publisher = await (await steady.channel()).get_exchange(named("exchange"))
            for round_ in range(3):
                for number in range(20):
                    body = b"%d" % (20 * round_ + number)
                    await publisher.publish(aio_pika.Message(body), "event.happened")
                while len(seen) < 20 * (round_ + 1):
                    arrived.clear()
                    await arrived.wait()
                if round_ < 2:
                    cable.cut()
            assert seen == set(range(60)) and cable.connections == 3
            await queue.delete(if_unused=False, if_empty=False)
            await exchange.delete()
        await robust.close()
        await cable.remove()

    run(work())
