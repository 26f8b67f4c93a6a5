/** The browser and the pets, for the tests and for the pictures. */
import { type Browser, chromium } from 'playwright-core'

export const key = 'demo-key'

/** JSON text, since an id may be more than a number of this language holds. */
export const petLines = [
  '{"id":1,"name":"Rex","categoryId":1,"status":"available"}',
  '{"id":2,"name":"Mia","categoryId":2,"status":"sold"}',
  '{"id":3,"name":"Coco","categoryId":3,"status":"pending"}',
  '{"id":4,"name":"Bello","categoryId":1,"status":"available"}',
  '{"id":5,"name":"Luna","categoryId":2,"status":"available"}',
  '{"id":6,"name":"Nemo","categoryId":4,"status":"available"}',
  '{"id":7,"name":"Kiki","categoryId":3,"status":"sold"}',
  '{"id":8,"name":"Hopper","categoryId":5,"status":"available"}',
  '{"id":9,"name":"Oskar","categoryId":1,"status":"pending"}',
  '{"id":10,"name":"Findus","categoryId":2,"status":"available"}',
  '{"id":11,"name":"Shelly","categoryId":6,"status":"available"}',
  '{"id":12,"name":"Pip","categoryId":5,"status":"sold"}',
]

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      // Chromium's sandbox does not start as root, who is the only user of a container.
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}
