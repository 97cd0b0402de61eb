// A small proxy that serves the hub below a path, as Jupyter and gateways do.
import { createServer, request } from "node:http";
import { connect } from "node:net";

export async function proxy(hub, prefix) {
  const target = new URL(hub.url);
  const inner = (url) => (url.startsWith(prefix) ? url.slice(prefix.length) || "/" : null);
  const server = createServer((asked, answer) => {
    const path = inner(asked.url);
    if (path === null) {
      answer.writeHead(404).end();
      return;
    }
    const headers = { ...asked.headers, "x-forwarded-prefix": prefix };
    const forward = request(
      { host: target.hostname, port: target.port, path, method: asked.method, headers },
      (from) => {
        answer.writeHead(from.statusCode, from.headers);
        from.pipe(answer);
      },
    );
    asked.pipe(forward);
  });
  server.on("upgrade", (asked, socket) => {
    const lines = [`GET ${inner(asked.url)} HTTP/1.1`];
    for (let at = 0; at < asked.rawHeaders.length; at += 2)
      lines.push(`${asked.rawHeaders[at]}: ${asked.rawHeaders[at + 1]}`);
    const up = connect(Number(target.port), target.hostname, () => up.write(`${lines.join("\r\n")}\r\n\r\n`));
    up.pipe(socket);
    socket.pipe(up);
    const end = () => {
      up.destroy();
      socket.destroy();
    };
    up.on("error", end);
    socket.on("error", end);
  });
  await new Promise((yes) => server.listen(0, "127.0.0.1", yes));
  return {
    ...hub,
    url: `http://127.0.0.1:${server.address().port}`,
    prefix,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
