import { workerUrl } from './worker-url.ts'

/** Sends one message to a new worker and resolves with its one answer. */
export const inWorker = async <Answer>(url: string, message: unknown): Promise<Answer> => {
  const worker = new Worker(workerUrl(url), { type: 'module' })
  try {
    return await new Promise<Answer>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Answer>) => resolve(data)
      worker.onerror = (event) => reject(new Error(event.message))
      worker.postMessage(message)
    })
  } finally {
    worker.terminate()
  }
}
