import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The service behind the gateway: it only answers 200 with a small document. Sends its port. */
const body = Buffer.from(JSON.stringify({ items: Array.from({ length: 5 }, (_, i) => ({ id: `r${i}`, name: 'x' })) }))
const server = createServer({ keepAliveTimeout: 75_000 }, (req, res) => {
  req.resume()
  res.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length, etag: '"1"' })
  res.end(body)
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
