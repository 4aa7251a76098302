"""Running the program while an event loop goes on."""

from __future__ import annotations

import asyncio
import tempfile
import threading

from ._process import Call, R, Running


async def drive(call: "Call[R]") -> R:
    """Runs a call to its end. Whoever cancels it waits until the program has ended."""
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory(prefix="afar-") as home:
        words = call.words(home)
        running = Running(call, words, home)
        try:
            await asyncio.wait_for(_ended(running), call.time_limit)
        except asyncio.TimeoutError:
            await loop.run_in_executor(None, running.stop)
            raise call.too_long() from None
        except BaseException:
            await asyncio.shield(loop.run_in_executor(None, running.stop))
            raise
        said = await loop.run_in_executor(None, running.said)
        return call.result(home, words, running.status(), said)


async def _ended(running: Running) -> None:
    loop = asyncio.get_running_loop()
    end: "asyncio.Future[None]" = loop.create_future()

    def tell() -> None:
        if not end.done():
            end.set_result(None)

    def wait() -> None:
        running.process.wait()
        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:
            pass  # The loop was closed; nobody waits.

    threading.Thread(target=wait, daemon=True).start()
    await end
