/** The reference implementation of RFC 8188, which states no types: the part that reads a push. */
declare module 'http_ece' {
  const ece: {
    decrypt: (
      body: Buffer,
      keys: { version: 'aes128gcm'; privateKey: import('node:crypto').ECDH; dh?: Buffer; authSecret: Buffer },
    ) => Buffer
  }
  export default ece
}
