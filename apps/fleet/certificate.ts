import { createHash } from 'node:crypto'

/**
 * The rotated certificate of a demo host: a serial, an expiry, and a PEM block. The block is derived from host and
 * serial, so a repeat with the same key returns the same bytes; it is not meant for TLS.
 */
export const certificateOf = (hostname: string, serial: number) => {
  const body = Buffer.concat(
    [0, 1, 2, 3, 4].map((part) => createHash('sha512').update(`${hostname}/${serial}/${part}`).digest()),
  ).toString('base64')
  const lines = body.match(/.{1,64}/g)?.join('\n') ?? ''
  return {
    serial,
    certificate: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    subject: `CN=${hostname}`,
  }
}
