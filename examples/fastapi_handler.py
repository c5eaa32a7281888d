"""A web service in front of Dragoman: one client for all requests, errors as HTTP statuses.

pip install fastapi uvicorn
export DRAGOMAN_ADDRESS=localhost:50051
uvicorn --app-dir examples fastapi_handler:app
curl 'localhost:8000/translate?text=Good+morning.'
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request

from dragoman_client import AsyncClient, CallError, InvalidRequestError, NotFoundError


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncClient() as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/translate")
async def translate(
    request: Request, text: str, source: str = "en", target: str = "pt"
) -> dict[str, str | float]:
    client: AsyncClient = request.app.state.client
    try:
        translation = await client.translate(
            text, source_language=source, target_language=target, timeout=10
        )
    except (InvalidRequestError, NotFoundError) as error:
        raise HTTPException(400, str(error)) from None
    except CallError as error:
        retry = {"Retry-After": str(round(error.retry_after or 1))}
        raise HTTPException(503, "the translation service is busy", retry) from None
    return {"text": translation.text, "score": translation.score}
