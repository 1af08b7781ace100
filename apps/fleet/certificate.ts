import { createHash } from 'node:crypto'

/**
 * What a rotated certificate of a demo host looks like: a serial, an end, and a PEM block. The block is made from host
 * and serial, so that a repeat with the same key gives the same bytes; it is not meant for TLS.
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
