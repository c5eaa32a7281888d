// Server-sent events out of the body of a response. The browser's own EventSource can only GET.

/** Yields `{type, data}` for each event of a stream of bytes. */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parse(block);
        if (event.data) {
          yield event;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // whoever stops reading wants no more of it
  }
}

function parse(block) {
  const event = { type: "message", data: "" };
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === "event") {
      event.type = value;
    } else if (field === "data") {
      event.data += event.data ? `\n${value}` : value;
    }
  }
  return event;
}
