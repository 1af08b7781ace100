CREATE TABLE "catalog"."import_job" (
	"job_id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"source" jsonb DEFAULT '{}' NOT NULL,
	"options" jsonb DEFAULT '{}' NOT NULL,
	"reason" text,
	"request_id" text,
	"status" text NOT NULL,
	"total" integer NOT NULL,
	"done" integer DEFAULT 0 NOT NULL,
	"counts" jsonb DEFAULT '{}' NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"problem" jsonb,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "catalog"."import_job_item" (
	"job_id" uuid NOT NULL,
	"seq" integer NOT NULL,
	"item" jsonb DEFAULT '{}' NOT NULL,
	"result" jsonb,
	"again" boolean DEFAULT false NOT NULL,
	CONSTRAINT "import_job_item_job_id_seq_pk" PRIMARY KEY("job_id","seq")
);
--> statement-breakpoint
CREATE INDEX "import_job_open" ON "catalog"."import_job" USING btree ("updated_at") WHERE ended_at is null;--> statement-breakpoint
CREATE INDEX "import_job_ended" ON "catalog"."import_job" USING btree ("ended_at") WHERE ended_at is not null;--> statement-breakpoint
CREATE INDEX "import_job_item_open" ON "catalog"."import_job_item" USING btree ("job_id","seq") WHERE result is null or again;